"""Taking replicas from one state to the next (Kafka's ReplicaStateMachine)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from ...common.partition_state import LeaderAndIsr
from ..channel.request_batch import ControllerBrokerRequestBatch
from ..context import ControllerContext, Replica, Topic
from .leadership import without_replica
from .leadership_writer import LeadershipWriter, PartitionOf
from .states import REPLICA_TRANSITIONS, ReplicaStatus

state_change_logger = logging.getLogger("odradek.state_change")


class ReplicaStateMachine:
    """Changes the states of replicas, and collects the requests to brokers.

    Args:
        context: what the controller knows.
        leaderships: writes the ISR without replicas that are gone.
        batch: where requests come together; the caller sends it.
    """

    def __init__(
        self,
        context: ControllerContext,
        leaderships: LeadershipWriter,
        batch: ControllerBrokerRequestBatch,
    ) -> None:
        self._context = context
        self._leaderships = leaderships
        self._batch = batch

    def begin(self) -> None:
        """Find out the state of each replica, as a new controller does."""
        context = self._context
        for topic in context.topics():
            for replica in topic.replicas():
                # One that is gone may have been deleted already: its broker gets a StopReplica.
                context.replica_statuses[replica] = (
                    ReplicaStatus.ONLINE if context.is_online(replica) else ReplicaStatus.OFFLINE
                )

    async def change(self, replicas: Iterable[Replica], target: ReplicaStatus) -> None:
        """Take replicas to a state, each from one that it may follow.

        Raises:
            IllegalTransitionError: it may not follow the state of one of them.
        """
        chosen = list(replicas)
        for replica in chosen:
            former = self._context.status(replica)
            REPLICA_TRANSITIONS.require(former, target, replica)
        if target is ReplicaStatus.OFFLINE:
            await self._take_offline(chosen)
        else:
            add_requests = self._REQUESTS.get(target)
            if add_requests is not None:
                for replica in chosen:
                    add_requests(self, replica, self._topic(replica))
        for replica in chosen:
            self._note(replica, target)

    def _topic(self, replica: Replica) -> Topic:
        topic = self._context.any_topic(replica.topic)
        assert topic is not None, f"{replica} is of no known topic"
        return topic

    def _note(self, replica: Replica, target: ReplicaStatus) -> None:
        if target is ReplicaStatus.NON_EXISTENT:
            self._context.replica_statuses.pop(replica, None)
        else:
            self._context.replica_statuses[replica] = target
        state_change_logger.debug(
            "controller epoch %d: replica %s-%d on broker %d is %s",
            self._context.epoch,
            *replica,
            target.name,
        )

    # -- the requests on the way to a state ------------------------------------

    def _request_new(self, replica: Replica, topic: Topic) -> None:
        """It begins empty; where there is no leader yet, it hears when there is one."""
        if replica.partition in topic.leaderships:
            self._batch.add_leader_and_isr(
                [replica.broker_id], topic, replica.partition, is_new=True
            )

    def _request_online(self, replica: Replica, topic: Topic) -> None:
        if self._context.status(replica) is ReplicaStatus.NEW:
            return  # its LeaderAndIsr was added when it became new, or its partition got a leader
        if replica.partition in topic.leaderships:
            self._batch.add_leader_and_isr([replica.broker_id], topic, replica.partition)

    def _request_deletion(self, replica: Replica, topic: Topic) -> None:
        self._batch.add_stop_replica([replica.broker_id], topic, replica.partition, delete=True)

    _REQUESTS: Mapping[ReplicaStatus, Callable[[ReplicaStateMachine, Replica, Topic], None]] = {
        ReplicaStatus.NEW: _request_new,
        ReplicaStatus.ONLINE: _request_online,
        ReplicaStatus.DELETION_STARTED: _request_deletion,
    }

    async def _take_offline(self, replicas: Sequence[Replica]) -> None:
        """Stop replicas, take them out of their ISRs, and update the others."""
        by_broker: dict[int, list[PartitionOf]] = {}
        for replica in replicas:
            topic = self._topic(replica)
            self._batch.add_stop_replica(
                [replica.broker_id], topic, replica.partition, delete=False
            )
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
            return without_replica(former, broker_id, self._context.epoch)

        changed, left = await self._leaderships.change(partitions, decide)
        for topic, partition in changed:
            others = [
                replica
                for replica in topic.assignment[partition]
                if replica != broker_id and replica in self._context.live_brokers
            ]
            if topic.is_being_deleted:
                continue
            self._batch.add_leader_and_isr(others, topic, partition)
        for topic, partition in left:
            self._batch.add_update_metadata(self._context.live_brokers, topic, [partition])
