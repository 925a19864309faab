"""Moving partitions to other brokers, one step for each replica that catches up (KIP-455).

After KafkaController.onPartitionReassignment: the assignment first becomes the union of the
old replicas and the new; when all of the new are in sync they alone remain.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ...common.errors import ErrorCode, KafkaError
from ...common.partition_state import LeaderAndIsr
from ...common.sentinels import NO_LEADER
from ..channel.request_batch import ControllerBrokerRequestBatch
from ..context import NO_REASSIGNMENT, ControllerContext, PartitionAndReplica, Reassignment, Topic
from ..fenced_store import FencedStore
from ..topics.assignment import validate_replicas
from ..topics.topic_nodes import write_assignment
from .leadership import elect_for_reassignment
from .leadership_writer import LeadershipWriter, PartitionOf
from .partition_state_machine import PartitionStateMachine
from .replica_state_machine import ReplicaStateMachine
from .states import ReplicaStatus

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class Reassignments:
    """Begins, continues, cancels and completes reassignments."""

    context: ControllerContext
    store: FencedStore
    leaderships: LeadershipWriter
    partitions: PartitionStateMachine
    replicas: ReplicaStateMachine
    batch: ControllerBrokerRequestBatch

    async def begin(self, item: PartitionOf, target: Sequence[int]) -> None:
        """Move a partition to `target`; one that is on its way goes there instead.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT, the target cannot be.
        """
        topic, partition = item
        self.require_possible(target)
        former = topic.target_replicas(partition)
        present = topic.assignment[partition]
        reassignment = topic.reassignments.get(partition)
        # What a cancelled reassignment was adding goes; what it was to remove stays.
        origin = (
            former
            if reassignment is None
            else tuple(each for each in present if each not in reassignment.adding)
        )
        target = tuple(target)
        if reassignment is None and target == present:
            return  # it has what it is to have: no new leader epoch
        adding = tuple(each for each in target if each not in origin)
        removing = tuple(each for each in origin if each not in target)
        dropped = [each for each in present if each not in target and each not in origin]
        if dropped and partition in topic.leaderships:
            await self._take_out_of_isr(item, dropped)
        await self._write(item, target + removing, Reassignment(adding, removing))
        if dropped:
            await self._remove(item, dropped)
        await self.advance(item, newly_added=[each for each in adding if each not in present])

    async def _take_out_of_isr(self, item: PartitionOf, dropped: Sequence[int]) -> None:
        """Replicas that go again leave the ISR first, as long as others are in it.

        The next leader epoch keeps the leader from taking them in again, in it or not.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT, nobody else is in sync: it would take an
                unclean election.
        """

        def decide(topic: Topic, partition: int) -> LeaderAndIsr | None:
            former = topic.leaderships[partition]
            isr = tuple(each for each in former.isr if each not in dropped)
            live = self.context.electable(topic, partition)
            leader = former.leader
            if leader in dropped:
                leader = next((each for each in isr if each in live), NO_LEADER)
            if leader == NO_LEADER and isr != former.isr:
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"{item} cannot give up {list(dropped)}: no other replica is in sync.",
                )
            return former.new_leader(self.context.epoch, leader, isr)

        await self.leaderships.change([item], decide)

    async def cancel(self, item: PartitionOf) -> None:
        """Go back to where a partition was before its reassignment.

        Raises:
            KafkaError: NO_REASSIGNMENT_IN_PROGRESS, or INVALID_REPLICA_ASSIGNMENT where
                none of the former replicas is alive.
        """
        topic, partition = item
        reassignment = topic.reassignments.get(partition)
        if reassignment is None:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        origin = [each for each in topic.assignment[partition] if each not in reassignment.adding]
        if not any(
            self.context.is_online(PartitionAndReplica(topic.name, partition, each))
            for each in origin
        ):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"None of the replicas that {item} would go back to is alive.",
            )
        await self.begin(item, origin)

    def require_possible(self, target: Sequence[int]) -> None:
        """Raise KafkaError, INVALID_REPLICA_ASSIGNMENT, if a target cannot be."""
        validate_replicas(target, self.context.live_brokers)

    async def _write(
        self, item: PartitionOf, replicas: tuple[int, ...], reassignment: Reassignment
    ) -> None:
        """Note where a partition is on its way to, in the store first."""
        topic, partition = item
        former = topic.assignment, dict(topic.reassignments)
        topic.assignment = {**topic.assignment, partition: replicas}
        if reassignment.adding or reassignment.removing:
            topic.reassignments[partition] = reassignment
        else:
            topic.reassignments.pop(partition, None)
        try:
            await write_assignment(self.store, topic)
        except BaseException:
            topic.assignment, topic.reassignments = former
            raise

    async def advance(self, item: PartitionOf, newly_added: Sequence[int] = ()) -> None:
        """Send the replicas its assignment, and complete it if all of them are in sync."""
        topic, partition = item
        if partition in topic.leaderships:
            await self._move_epoch(item)
        await self.replicas.change(
            [PartitionAndReplica(topic.name, partition, broker_id) for broker_id in newly_added],
            ReplicaStatus.NEW,
        )
        if partition not in topic.leaderships:
            # None of its replicas was alive when it was made; one of the new ones may be.
            await self.partitions.bring_online([item])
        self.batch.send()
        if self.is_complete(item):
            await self._complete(item)

    def is_complete(self, item: PartitionOf) -> bool:
        """Whether all replicas that are to stay are in sync."""
        topic, partition = item
        leadership = topic.leaderships.get(partition)
        return leadership is not None and set(topic.target_replicas(partition)) <= set(
            leadership.isr
        )

    async def _move_epoch(self, item: PartitionOf) -> None:
        """All replicas hear of the assignment, in the next leader epoch."""
        epoch = self.context.epoch
        changed, _ = await self.leaderships.change(
            [item],
            lambda topic, partition: topic.leaderships[partition]._replace(
                controller_epoch=epoch,
                leader_epoch=topic.leaderships[partition].leader_epoch + 1,
            ),
        )
        for topic, partition in changed:
            self.batch.add_leader_and_isr(topic.assignment[partition], topic, partition)

    async def _complete(self, item: PartitionOf) -> None:
        """The new replicas alone remain; another leads if the leader is to go."""
        topic, partition = item
        target = topic.target_replicas(partition)
        removed = [each for each in topic.assignment[partition] if each not in target]
        newcomers = [
            replica
            for broker_id in target
            if self.context.status(replica := PartitionAndReplica(topic.name, partition, broker_id))
            is ReplicaStatus.NEW
        ]
        await self.replicas.change(newcomers, ReplicaStatus.ONLINE)
        former = topic.assignment
        topic.assignment = {**former, partition: target}
        reassignment = topic.reassignments.pop(partition, NO_REASSIGNMENT)
        if not await self._lead_from_target(item):
            topic.assignment = former
            if reassignment is not NO_REASSIGNMENT:
                topic.reassignments[partition] = reassignment
            return
        await self._remove(item, removed)
        if reassignment is not NO_REASSIGNMENT:
            await self._write(item, target, NO_REASSIGNMENT)
        self.batch.add_update_metadata(self.context.live_brokers, topic, partition)
        self.batch.send()
        logger.info("%s is now on brokers %s", item, list(target))

    async def _lead_from_target(self, item: PartitionOf) -> bool:
        """Have one of the new replicas lead, in the next leader epoch; whether one does."""
        topic, partition = item
        leader = topic.leaderships[partition].leader
        left: list[PartitionOf] = []
        if leader in topic.assignment[partition] and self.context.is_online(
            PartitionAndReplica(topic.name, partition, leader)
        ):
            await self._move_epoch(item)
        else:
            left = await self.partitions.bring_online([item], elect_for_reassignment)
        self.batch.send()
        if left:
            logger.warning("%s stays where it is until one of the new brokers can lead", item)
        return not left

    async def _remove(self, item: PartitionOf, broker_ids: Sequence[int]) -> None:
        """Stop and delete replicas that are not assigned any more; nothing waits for the answer."""
        replicas = [
            PartitionAndReplica(item.topic.name, item.partition, each) for each in broker_ids
        ]
        known = [
            each for each in replicas if self.context.status(each) is not ReplicaStatus.NON_EXISTENT
        ]
        for target in (
            ReplicaStatus.OFFLINE,
            ReplicaStatus.DELETION_STARTED,
            ReplicaStatus.DELETION_SUCCESSFUL,
            ReplicaStatus.NON_EXISTENT,
        ):
            await self.replicas.change(known, target)
        self.batch.send()

    async def isr_changed(self, items: Sequence[PartitionOf]) -> None:
        """Partitions whose ISR was changed: some reassignments may be complete now."""
        for item in items:
            if item.partition in item.topic.reassignments and self.is_complete(item):
                await self._complete(item)

    async def resume(self) -> None:
        """Brokers came or went: complete the reassignments that can be completed now.

        A leader that dies after it changed the ISR may not have notified the controller.
        """
        for topic in list(self.context.topics()):
            for partition in list(topic.reassignments):
                item = PartitionOf(topic, partition)
                if self.is_complete(item):
                    await self._complete(item)
