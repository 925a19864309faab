"""Members of a streams group (KIP-1071)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ....protocol import messages
from ....protocol.codec.message import Message
from ..checkers.group_checker import REBALANCE_TIMEOUT_MS, GroupChecker
from ..checkers.log_checker import Key
from .client import SimulatedCluster
from .heartbeat_members import JOINING, HeartbeatMember

Task = tuple[str, int]
"""A subtopology, which is named as the one topic that it reads, and a partition of that."""


class StreamsMember(HeartbeatMember):
    """One of them, an instance by itself.

    Args:
        cluster: the cluster.
        name: its name.
        group: whose member it is.
        checker: is told what it owns, and what it has committed.
        topics: what the group's topology reads, each in a subtopology of its own.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        name: str,
        group: str,
        checker: GroupChecker,
        topics: tuple[str, ...],
    ) -> None:
        super().__init__(cluster, name, group, checker)
        self._topics = topics
        self._tasks: frozenset[Task] = frozenset()

    def join(self) -> None:
        """The first heartbeat joins, without a task."""
        super().join()
        self._tasks = frozenset()

    async def leave(self) -> None:
        """The last heartbeat leaves, without a task."""
        self._tasks = frozenset()
        await super().leave()

    def heartbeat(self) -> Message:
        """Says which tasks it has; the first one also what the topology is."""
        message = messages.StreamsGroupHeartbeatRequest
        is_joining = self.epoch == JOINING
        return message(
            group_id=self.group,
            member_id=self.stay,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            topology=self._topology() if is_joining else None,
            process_id=self.stay if is_joining else None,
            active_tasks=[
                message.TaskIds(subtopology_id=topic, partitions=partitions)
                for topic, partitions in _by_topic(self._tasks).items()
            ],
            standby_tasks=[],
            warmup_tasks=[],
        )

    def assigned(self, answer: Any) -> Collection[Key]:
        """What its tasks read: another partition once a topic was made anew."""
        if answer.active_tasks is not None:
            self._tasks = frozenset(
                (tasks.subtopology_id, partition)
                for tasks in answer.active_tasks
                for partition in tasks.partitions
            )
        return {
            (self.topic_ids[topic], partition): None
            for topic, partition in sorted(self._tasks)
            if topic in self.topic_ids
        }

    def _topology(self) -> messages.StreamsGroupHeartbeatRequest.Topology:
        message = messages.StreamsGroupHeartbeatRequest
        return message.Topology(
            epoch=1,
            subtopologies=[
                message.Subtopology(subtopology_id=each, source_topics=[each])
                for each in self._topics
            ],
        )


def _by_topic(tasks: Iterable[Task]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(tasks):
        found.setdefault(topic, []).append(partition)
    return found
