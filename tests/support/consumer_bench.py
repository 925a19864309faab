"""Consumer groups on a log in memory, over topics of the test's, in time that the test moves."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.heartbeat_request import HeartbeatAnswer, HeartbeatRequest
from odradek.coordinator.group.consumer.settings import ConsumerGroupSettings
from odradek.coordinator.group.consumer.topics import TopicMetadata
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.coordinator.group.runtime import GroupRuntime
from odradek.coordinator.group.settings import GroupSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.runtime.timers import Timers

from .memory_log import PARTITIONS, MemoryLog
from .pending import Pending

NOW_MS = 1_700_000_000_000
GROUP = "group"
ORDERS, PAYMENTS = b"o" * 16, b"p" * 16
"""The ids of the topics that are there: four partitions, and two."""


class Topics:
    """The topics of a cluster that a test makes up; see `TopicsImage`."""

    def __init__(self) -> None:
        self.version = 1
        self._topics: dict[str, TopicMetadata] = {}

    def put(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.version += 1
        self._topics[name] = TopicMetadata(name, topic_id, [()] * partitions)

    def drop(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def names(self) -> Collection[str]:
        return self._topics.keys()

    def find(self, name: str) -> TopicMetadata | None:
        return self._topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return next((t.name for t in self._topics.values() if t.topic_id == topic_id), None)


class CoordinatorBench:
    """A group coordinator on a log in memory; every call flushes what it appended.

    Args:
        settings: of groups.
        consumer_settings: of consumer groups.
    """

    def __init__(self, settings: GroupSettings, consumer_settings: ConsumerGroupSettings) -> None:
        self.settings = settings
        self.consumer_settings = consumer_settings
        self.log = MemoryLog()
        self.clock = ManualClock(NOW_MS)
        self.rng = random.Random(7)
        self.topics = Topics()
        self.restart()

    def restart(self) -> None:
        """A new broker on the same log."""
        self.timers = Timers()
        self.runtime = GroupRuntime(self.settings, self.clock, self.timers, self.rng, self.log)
        self.coordinator = GroupCoordinator(
            self.runtime, lambda: PARTITIONS, lambda: self.topics, self.consumer_settings
        )
        for partition in range(PARTITIONS):
            self.coordinator.note_leadership(partition, 0, is_leader=True)
        self.coordinator.start()
        self.advance(0)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, and everything happen that is due on the way, at its moment."""
        end_ms = self.clock.monotonic_ms() + milliseconds
        while True:
            deadline_ms = self.timers.next_deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self.clock.advance(max(deadline_ms - self.clock.monotonic_ms(), 0))
            self.timers.run_due(self.clock.monotonic_ms())
            self.log.flush()
        self.clock.advance(end_ms - self.clock.monotonic_ms())


class ConsumerBench(CoordinatorBench):
    """A coordinator of consumer groups, over topics of the test's.

    The target of a group is computed at once, unless a test sets an interval.
    """

    def __init__(self, **settings: Any) -> None:
        consumer_settings = ConsumerGroupSettings(**{"assignment_interval_ms": 0, **settings})
        super().__init__(GroupSettings(), consumer_settings)
        self.topics.put("orders", ORDERS, 4)
        self.topics.put("payments", PAYMENTS, 2)

    def change_topics(self, *names: str, has_new: bool = False) -> None:
        """Tell the coordinator that topics changed."""
        self.coordinator.topics_changed(frozenset(names), has_new)

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        (found,) = (g for g in self.coordinator.consumer_groups if g.group_id == group_id)
        return found

    @property
    def state(self) -> str:
        """The group's state as it is told to others."""
        return self.coordinator.describe_consumer_group(GROUP).state

    # -- heartbeats -----------------------------------------------------------------------

    def send(self, member_id: str, epoch: int, **fields: Any) -> Pending[HeartbeatAnswer]:
        """Send a heartbeat; it may be answered later. A refusal is an answer as well."""
        pending: Pending[HeartbeatAnswer] = Pending()
        group_id = fields.pop("group_id", GROUP)
        topics, owned = fields.pop("topics", None), fields.pop("owned", None)
        request = HeartbeatRequest(
            group_id,
            member_id,
            epoch,
            subscribed_topic_names=None if topics is None else frozenset(topics),
            owned=None if owned is None else {t: frozenset(p) for t, p in owned.items()},
            client_id="client",
            client_host="/127.0.0.1",
            **fields,
        )
        try:
            run_at_once(self.coordinator.consumer_group_heartbeat(request, pending))
        except KafkaError as refusal:
            pending(HeartbeatAnswer(refusal.code, refusal.message))
        self.log.flush()
        return pending

    def beat(self, member_id: str, epoch: int, **fields: Any) -> HeartbeatAnswer:
        """Send a heartbeat that is answered at once."""
        return self.send(member_id, epoch, **fields).answer

    def join(
        self, member_id: str, topics: Iterable[str] = ("orders",), **fields: Any
    ) -> HeartbeatAnswer:
        """A heartbeat by which a member joins."""
        first = {"owned": {}, "rebalance_timeout_ms": 30_000, "topics": topics, **fields}
        return self.beat(member_id, 0, **first)

    def leave(self, member_id: str, **fields: Any) -> HeartbeatAnswer:
        """A heartbeat by which a member leaves."""
        return self.beat(member_id, -1, **fields)

    def settle(self, *member_ids: str) -> dict[str, dict[bytes, set[int]]]:
        """Let members heartbeat, and do as they are told, until all have their targets.

        Returns:
            what each owns.
        """
        owned: dict[str, dict[bytes, set[int]]] = {}
        for _ in range(10):
            for member_id in member_ids:
                member = self.group().members[member_id]
                answer = self.beat(
                    member_id,
                    member.member_epoch,
                    owned=partitions(member.assigned_partitions),
                    instance_id=member.instance_id,
                )
                assert answer.error is ErrorCode.NONE, answer
                owned[member_id] = partitions(self.group().members[member_id].assigned_partitions)
            if self.state == "Stable":
                return owned
        raise AssertionError(f"the group is {self.state} still")

    def partition_of(self, group_id: str = GROUP) -> int:
        """The partition of the log that keeps a group."""
        return self.coordinator.partition_for(group_id)


def partitions(owned: Mapping[bytes, Iterable[int]]) -> dict[bytes, set[int]]:
    """Partitions by topic id, without epochs."""
    return {topic_id: set(numbers) for topic_id, numbers in owned.items()}
