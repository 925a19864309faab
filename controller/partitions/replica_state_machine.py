"""Taking replicas from one state to the next (Kafka's ReplicaStateMachine)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...common.partition_state import LeaderAndIsr
from ...runtime.long_work import KeepPace
from ..channel.request_batch import ControllerBrokerRequestBatch
from ..context import ControllerContext, PartitionAndReplica, Topic
from .leadership import without_replica
from .leadership_writer import LeadershipWriter, PartitionOf
from .states import REPLICA_TRANSITIONS, ReplicaStatus

state_change_logger = logging.getLogger("odradek.state_change")


@dataclass(eq=False, repr=False)
class ReplicaStateMachine:
    """Changes the states of replicas, and collects the requests to brokers.

    Args:
        context: what the controller knows.
        leaderships: writes the ISR without replicas that are gone.
        batch: where requests come together; the caller sends it.
        keep_pace: awaited after each replica: there may be thousands.
    """

    context: ControllerContext
    leaderships: LeadershipWriter
    batch: ControllerBrokerRequestBatch
    keep_pace: KeepPace

    async def begin(self) -> None:
        """Find out the state of each replica, as a new controller does."""
        context = self.context
        for topic in context.topics():
            for replica in topic.replicas():
                await self.keep_pace()
                # One that is gone may have been deleted already: its broker gets a StopReplica.
                context.replica_statuses[replica] = (
                    ReplicaStatus.ONLINE if context.is_online(replica) else ReplicaStatus.OFFLINE
                )

    async def change(self, replicas: Iterable[PartitionAndReplica], target: ReplicaStatus) -> None:
        """Take replicas to a state, each from one that it may follow.

        Raises:
            IllegalTransitionError: it may not follow the state of one of them.
        """
        chosen = list(replicas)
        for replica in chosen:
            await self.keep_pace()
            former = self.context.status(replica)
            REPLICA_TRANSITIONS.require(former, target, replica)
        if target is ReplicaStatus.OFFLINE:
            await self._take_offline(chosen)
        else:
            for replica in chosen:
                await self.keep_pace()
                self._add_requests(replica, target)
        for replica in chosen:
            await self.keep_pace()
            self._note(replica, target)

    def _topic(self, replica: PartitionAndReplica) -> Topic:
        topic = self.context.any_topic(replica.topic)
        assert topic is not None, f"{replica} is of no known topic"
        return topic

    def _note(self, replica: PartitionAndReplica, target: ReplicaStatus) -> None:
        if target is ReplicaStatus.NON_EXISTENT:
            self.context.replica_statuses.pop(replica, None)
        else:
            self.context.replica_statuses[replica] = target
        state_change_logger.debug(
            "controller epoch %d: replica %s-%d on broker %d is %s",
            self.context.epoch,
            *replica,
            target.name,
        )

    def _add_requests(self, replica: PartitionAndReplica, target: ReplicaStatus) -> None:
        """What the replica's broker is sent on the way to a state."""
        topic = self._topic(replica)
        broker_ids = [replica.broker_id]
        if target is ReplicaStatus.DELETION_STARTED:
            self.batch.add_stop_replica(broker_ids, topic, replica.partition, delete=True)
        elif replica.partition not in topic.leaderships:
            pass  # the partition's first leader comes with a LeaderAndIsr to all replicas
        elif target is ReplicaStatus.NEW:
            self.batch.add_leader_and_isr(broker_ids, topic, replica.partition, is_new=True)
        elif (
            target is ReplicaStatus.ONLINE and self.context.status(replica) is not ReplicaStatus.NEW
        ):
            # A new one got its LeaderAndIsr when it became new, or its partition a leader.
            self.batch.add_leader_and_isr(broker_ids, topic, replica.partition)

    async def _take_offline(self, replicas: Sequence[PartitionAndReplica]) -> None:
        """Stop replicas, take them out of their ISRs, and update the others."""
        by_broker: dict[int, list[PartitionOf]] = {}
        for replica in replicas:
            await self.keep_pace()
            topic = self._topic(replica)
            self.batch.add_stop_replica([replica.broker_id], topic, replica.partition, delete=False)
            by_broker.setdefault(replica.broker_id, []).append(
                PartitionOf(topic, replica.partition)
            )
        for broker_id, partitions in by_broker.items():
            await self._leave_isr(broker_id, partitions)

    async def _leave_isr(self, broker_id: int, partitions: Sequence[PartitionOf]) -> None:
        def decide(topic: Topic, partition: int) -> LeaderAndIsr | None:
            former = topic.leaderships[partition]
            if broker_id not in former.isr:
                return None
            return without_replica(former, broker_id, self.context.epoch)

        changed, left = await self.leaderships.change(partitions, decide)
        for topic, partition in changed:
            await self.keep_pace()
            others = [
                replica
                for replica in topic.assignment[partition]
                if replica != broker_id and replica in self.context.live_brokers
            ]
            if topic.is_being_deleted:
                continue
            self.batch.add_leader_and_isr(others, topic, partition)
        for topic, partition in left:
            await self.keep_pace()
            self.batch.add_update_metadata(self.context.live_brokers, topic, partition)
