"""Streams groups on a log in memory, over topics of the test's, in time that the test moves."""

from __future__ import annotations

import random
from typing import Any

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.consumer.settings import ConsumerGroupSettings
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.coordinator.group.runtime import GroupRuntime
from odradek.coordinator.group.settings import GroupSettings
from odradek.coordinator.group.streams.group import StreamsGroup
from odradek.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatAnswer
from odradek.coordinator.group.streams.settings import StreamsGroupSettings
from odradek.coordinator.group.streams.tasks import NOTHING, Tasks
from odradek.coordinator.group.streams.topology import InternalTopic, Subtopology, Topology
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.runtime.timers import Timers

from .consumer_bench import GROUP, NOW_MS, ORDERS, Topics
from .memory_log import PARTITIONS, MemoryLog
from .pending import Pending

WORDS = Topology(
    0,
    {
        "0": Subtopology("0", ("orders",), (), ("app-repartition",)),
        "1": Subtopology(
            "1",
            (),
            (),
            (),
            (InternalTopic("app-repartition"),),
            (InternalTopic("app-changelog", configs=(("cleanup.policy", "compact"),)),),
        ),
    },
)
"""Reads orders, counts by another key; two subtopologies."""

INTERNAL = {"app-repartition": b"r" * 16, "app-changelog": b"c" * 16}


class StreamsBench:
    """A coordinator of streams groups; every call flushes what it appended.

    Args:
        settings: of streams groups, where they are not to be Kafka's but without delays.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = StreamsGroupSettings(
            **{"assignment_interval_ms": 0, "initial_rebalance_delay_ms": 0, **settings}
        )
        self.log = MemoryLog()
        self.clock = ManualClock(NOW_MS)
        self.topics = Topics()
        self.topics.put("orders", ORDERS, 4)
        self.restart()

    def restart(self) -> None:
        """A new broker on the same log."""
        self.timers = Timers()
        runtime = GroupRuntime(GroupSettings(), self.clock, self.timers, random.Random(3), self.log)
        self.coordinator = GroupCoordinator(
            runtime,
            lambda: PARTITIONS,
            lambda: self.topics,
            ConsumerGroupSettings(),
            streams_settings=self.settings,
        )
        for partition in range(PARTITIONS):
            self.coordinator.note_leadership(partition, 0, is_leader=True)
        self.advance(0)

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())
        self.log.flush()

    def make_internal_topics(self) -> None:
        """Make what the topology needs, as the broker does."""
        for name, topic_id in INTERNAL.items():
            self.topics.put(name, topic_id, 4)
        self.coordinator.topics_changed(frozenset(INTERNAL), True)

    @property
    def group(self) -> StreamsGroup:
        (group,) = self.coordinator.streams_groups
        return group

    # -- heartbeats -----------------------------------------------------------------------

    def send(self, member_id: str, epoch: int, **fields: Any) -> Pending[StreamsHeartbeatAnswer]:
        """Send a heartbeat; it may be answered later. A refusal is an answer as well."""
        pending: Pending[StreamsHeartbeatAnswer] = Pending()
        if epoch == 0:
            fields = {
                "topology": WORDS,
                "rebalance_timeout_ms": 1000,
                "process_id": f"process of {member_id}",
                "active": {},
                "standby": {},
                "warmup": {},
                **fields,
            }
        owned = fields.pop("owned", None)
        if owned is not None:
            fields.update(active=owned.active, standby=owned.standby, warmup=owned.warmup)
        request = StreamsHeartbeat(GROUP, member_id, epoch, **fields)
        try:
            run_at_once(self.coordinator.streams.heartbeat(request, pending))
        except KafkaError as refusal:
            pending(StreamsHeartbeatAnswer(refusal.code, refusal.message))
        return pending

    def beat(self, member_id: str, epoch: int, **fields: Any) -> StreamsHeartbeatAnswer:
        """Send a heartbeat, and have it answered."""
        pending = self.send(member_id, epoch, **fields)
        self.log.flush()
        return pending.answer

    def settle(self, *member_ids: str) -> dict[str, Tasks]:
        """Have members beat, and give up what they are to, until all have what they are to have;
        what each has then.

        Raises:
            AssertionError: it takes more than some rounds.
        """
        for _ in range(10):
            for member_id in member_ids:
                member = self.group.members[member_id]
                owned = member.assigned.without_epochs()
                answer = self.beat(member_id, member.member_epoch, owned=owned)
                assert answer.error is ErrorCode.NONE, answer
            if self.group.state.value == "Stable":
                return {
                    member_id: self.group.members[member_id].assigned.without_epochs()
                    for member_id in member_ids
                }
        raise AssertionError(self.group.now)


def owning(**tasks: dict[str, set[int]]) -> Tasks:
    """What a member says that it has: `owning(active={"0": {1}})`."""
    return NOTHING._replace(
        **{
            kind: {each: frozenset(numbers) for each, numbers in sets.items()}
            for kind, sets in tasks.items()
        }
    )
