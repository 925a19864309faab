"""Taking partitions from one state to the next (Kafka's PartitionStateMachine)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ...common.in_words import first_few
from ...common.partition_state import LeaderAndIsr
from ...common.sentinels import NO_LEADER
from ...runtime.long_work import KeepPace
from ..channel.request_batch import ControllerBrokerRequestBatch
from ..context import ControllerContext, PartitionAndReplica, Topic
from .leadership import Election, Electorate, elect_for_offline
from .leadership_writer import LeadershipWriter, PartitionOf
from .states import PARTITION_TRANSITIONS, PartitionStatus

logger = logging.getLogger(__name__)
state_change_logger = logging.getLogger("odradek.state_change")

NAMED_MAX = 10
"""So many partitions are named in a log line."""

AllowsUnclean = Callable[[Topic], bool]
"""Whether a topic takes a leader out of sync rather than none."""


@dataclass(eq=False, repr=False)
class PartitionStateMachine:
    """Changes the states of partitions, and collects the requests to brokers.

    Args:
        context: what the controller knows.
        leaderships: writes leaders.
        batch: where requests come together; the caller sends it.
        allows_unclean: `unclean.leader.election.enable` of a topic.
        keep_pace: awaited after each partition: there may be thousands.
    """

    context: ControllerContext
    leaderships: LeadershipWriter
    batch: ControllerBrokerRequestBatch
    allows_unclean: AllowsUnclean
    keep_pace: KeepPace

    async def begin(self, restarted: Collection[int] = ()) -> None:
        """Find out the state of each partition, as a new controller does.

        Args:
            restarted: brokers whose partitions need another leadership though they live.
        """
        for topic in self.context.topics():
            for partition in topic.assignment:
                await self.keep_pace()
                topic.statuses[partition] = self._initial_status(topic, partition, restarted)

    def _initial_status(
        self, topic: Topic, partition: int, restarted: Collection[int]
    ) -> PartitionStatus:
        leadership = topic.leaderships.get(partition)
        if leadership is None:
            return PartitionStatus.NEW
        leader = leadership.leader
        if leader not in restarted and self.context.is_online(
            PartitionAndReplica(topic.name, partition, leader)
        ):
            return PartitionStatus.ONLINE
        return PartitionStatus.OFFLINE

    async def set_status(self, partitions: Iterable[PartitionOf], target: PartitionStatus) -> None:
        """Take partitions to a state that nobody has to be elected for."""
        for item in partitions:
            await self.keep_pace()
            topic, partition = item
            PARTITION_TRANSITIONS.require(topic.status(partition), target, item)
            if target is PartitionStatus.NON_EXISTENT:
                topic.statuses.pop(partition, None)
            else:
                topic.statuses[partition] = target
            self._log(item, target)

    async def bring_online(
        self, partitions: Iterable[PartitionOf], elect: Election = elect_for_offline
    ) -> list[PartitionOf]:
        """Give partitions a leader: their first, or one that `elect` finds.

        Returns:
            Those that stay without the leader that was looked for.
        """
        new: list[PartitionOf] = []
        others: list[PartitionOf] = []
        for item in partitions:
            await self.keep_pace()
            status = item.topic.status(item.partition)
            PARTITION_TRANSITIONS.require(status, PartitionStatus.ONLINE, item)
            (new if status is PartitionStatus.NEW else others).append(item)
        led = await self.leaderships.create(new) if new else []
        for topic, partition in led:
            await self.keep_pace()
            self.batch.add_leader_and_isr(
                self._live_replicas(topic, partition), topic, partition, is_new=True
            )
        changed, left = await self._elect(others, elect)
        for item in (*led, *changed):
            await self.keep_pace()
            item.topic.statuses[item.partition] = PartitionStatus.ONLINE
            self._log(item, PartitionStatus.ONLINE)
        found = set(led)
        return [item for item in new if item not in found] + left

    async def _elect(
        self, partitions: Sequence[PartitionOf], elect: Election
    ) -> tuple[list[PartitionOf], list[PartitionOf]]:
        if not partitions:
            return [], []

        def decide(topic: Topic, partition: int) -> LeaderAndIsr | None:
            return elect(self._electorate(topic, partition))

        changed, left = await self.leaderships.change(partitions, decide)
        for topic, partition in changed:
            await self.keep_pace()
            self.batch.add_leader_and_isr(self._live_replicas(topic, partition), topic, partition)
        return changed, left

    def _electorate(self, topic: Topic, partition: int) -> Electorate:
        context = self.context
        return Electorate(
            topic.leaderships[partition],
            topic.assignment[partition],
            context.electable(topic, partition),
            context.shutting_down,
            context.epoch,
            self.allows_unclean(topic),
        )

    def _live_replicas(self, topic: Topic, partition: int) -> list[int]:
        return [
            broker_id
            for broker_id in topic.assignment[partition]
            if self.context.is_online(PartitionAndReplica(topic.name, partition, broker_id))
        ]

    async def bring_all_online(
        self, topics: Iterable[Topic] | None = None, *, is_expected: bool = False
    ) -> None:
        """Look for a leader for every partition that has none and is not being deleted.

        Args:
            topics: only of these.
            is_expected: whoever had their replicas left in good order, so that those for which
                there is none are no error.
        """
        waiting = (PartitionStatus.NEW, PartitionStatus.OFFLINE)
        partitions: list[PartitionOf] = []
        for topic in self.context.topics() if topics is None else topics:
            if not topic.is_being_deleted:
                for partition, status in topic.statuses.items():
                    await self.keep_pace()
                    if status in waiting:
                        partitions.append(PartitionOf(topic, partition))
        left = await self.bring_online(partitions)
        if left:
            logger.log(
                logging.INFO if is_expected else logging.ERROR,
                "no leader, as no replica in sync is alive: %s",
                first_few(left, NAMED_MAX),
            )

    async def bring_electable_online(self, items: Iterable[PartitionOf]) -> None:
        """Elect for those partitions that have no leader, though one in sync is alive.

        A leader that was given up may have changed the ISR between the election, which then
        found nobody, and its own removal from the ISR.
        """
        found = []
        for item in items:
            await self.keep_pace()
            topic, partition = item
            leadership = topic.leaderships.get(partition)
            if topic.is_being_deleted or leadership is None:
                continue
            electable = self.context.electable(topic, partition)
            if leadership.leader == NO_LEADER and any(each in electable for each in leadership.isr):
                found.append(item)
        await self.bring_online(found)

    def _log(self, item: PartitionOf, target: PartitionStatus) -> None:
        leadership = item.topic.leaderships.get(item.partition)
        state_change_logger.debug(
            "controller epoch %d: partition %s is %s, %s",
            self.context.epoch,
            item,
            target.name,
            "never led" if leadership is None else leadership,
        )
