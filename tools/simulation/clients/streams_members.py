"""Members of a streams group (KIP-1071), whose tasks come in answers to heartbeats."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol import messages
from ..checkers.group_checker import REBALANCE_TIMEOUT_MS, GroupChecker
from .client import METADATA_MAX_AGE_US, SimulatedCluster
from .consumer_members import JOINING, LEAVING, REJECTED
from .group_members import GroupMember

Task = tuple[str, int]
"""A subtopology, which is named as the one topic that it reads, and a partition of that."""


class StreamsMember(GroupMember):
    """One of them, an instance by itself; it makes its member id itself.

    Args:
        cluster: the cluster.
        name: its name.
        group: whose member it is.
        checker: is told what it owns, and what it has committed.
        topics: what the group's topology reads, each in a subtopology of its own.
    """

    _epoch = JOINING

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

    @property
    def identity(self) -> tuple[str, int]:
        """Its id, another one for each stay, and the epoch that it was told last."""
        return self.stay, self._epoch

    def join(self) -> None:
        """The first heartbeat joins."""
        self._epoch = JOINING
        self._tasks = frozenset()

    async def beat(self) -> bool:
        """A heartbeat, which says which tasks it has; the answer says which it should have."""
        broker_id = await self.coordinator()
        sent_ms = self.cluster.kernel.now_us // 1000
        message = messages.StreamsGroupHeartbeatRequest
        is_joining = self._epoch == JOINING
        request = message(
            group_id=self.group,
            member_id=self.stay,
            member_epoch=self._epoch,
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
        answer = await self.request(broker_id, request)
        if answer.error_code in REJECTED:
            return False
        if answer.error_code:
            self.lost_coordinator()
            return True
        self._epoch = answer.member_epoch
        self.checker.heard_of(self.group, self.stay, sent_ms)
        if answer.active_tasks is not None:
            self._tasks = frozenset(
                (tasks.subtopology_id, partition)
                for tasks in answer.active_tasks
                for partition in tasks.partitions
            )
        # What a task reads is another partition once its topic was made anew.
        await self.take(
            {
                (self.topic_ids[topic], partition): None
                for topic, partition in sorted(self._tasks)
                if topic in self.topic_ids
            }
        )
        return True

    async def leave(self) -> None:
        """The last heartbeat leaves."""
        self._epoch = LEAVING
        self._tasks = frozenset()
        await self.refresh(METADATA_MAX_AGE_US)
        await self.beat()

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
