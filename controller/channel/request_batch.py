"""The requests that a decision leads to, collected and sent as few.

After Kafka's ControllerBrokerRequestBatch. Each broker gets at most one LeaderAndIsr, one
UpdateMetadata and one StopReplica, in this order, so that a leader leads before clients
learn of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from ...common.errors import ErrorCode
from ...common.live_broker import LiveBroker
from ...common.partition_state import PartitionState, StoppedReplica
from ...common.topic_partition import TopicPartition
from ...runtime.long_work import KeepPace
from ..context import ControllerContext, Topic
from .channel import (
    BecomeLeaderOrFollower,
    ControllerChannel,
    PartitionErrors,
    StopReplica,
    UpdateMetadata,
)

state_change_logger = logging.getLogger("odradek.state_change")

BrokerAnswer = Callable[[LiveBroker, PartitionErrors], None]
"""Gets the broker, in the registration that was sent to, and the error of each partition."""

LEADER_EPOCH_DURING_DELETE = -2


class ControllerBrokerRequestBatch:
    """Collects; `send` hands over what has come together and begins anew.

    Args:
        controller_id: in whose name.
        on_leader_and_isr: gets the answers to LeaderAndIsr.
        on_deleted: gets the answers to those StopReplica that delete.
        keep_pace: awaited after each of all partitions that there are.
    """

    def __init__(
        self,
        controller_id: int,
        context: ControllerContext,
        channel: ControllerChannel,
        *,
        on_leader_and_isr: BrokerAnswer,
        on_deleted: BrokerAnswer,
        keep_pace: KeepPace,
    ) -> None:
        self._controller_id = controller_id
        self._context = context
        self._channel = channel
        self._on_leader_and_isr = on_leader_and_isr
        self._on_deleted = on_deleted
        self._keep_pace = keep_pace
        self._leader_and_isr: dict[int, dict[TopicPartition, PartitionState]] = {}
        self._stopped: dict[int, dict[TopicPartition, StoppedReplica]] = {}
        self._metadata: dict[TopicPartition, PartitionState] = {}
        self._metadata_brokers: set[int] = set()
        self._full_metadata: set[int] = set()
        self._full_leader_and_isr: set[int] = set()

    def add_leader_and_isr(
        self, broker_ids: Iterable[int], topic: Topic, partition: int, *, is_new: bool = False
    ) -> None:
        """Brokers are to lead or follow a partition; all brokers learn of its state."""
        state = topic.partition_state(partition, is_new=is_new)
        topic_partition = state.topic_partition
        for broker_id in broker_ids:
            leader_and_isr = self._leader_and_isr.setdefault(broker_id, {})
            former = leader_and_isr.get(topic_partition)
            if former is not None and former.is_new and not is_new:
                leader_and_isr[topic_partition] = state._replace(is_new=True)
            else:
                leader_and_isr[topic_partition] = state
        self.add_update_metadata(self._context.live_brokers, topic, partition)

    def add_stop_replica(
        self, broker_ids: Iterable[int], topic: Topic, partition: int, *, delete: bool
    ) -> None:
        """Brokers are to stop being replicas of a partition, and to delete it if so said."""
        topic_partition = TopicPartition(topic.name, partition)
        leadership = topic.leaderships.get(partition)
        if topic.is_being_deleted:
            leader_epoch = LEADER_EPOCH_DURING_DELETE
        else:
            leader_epoch = -1 if leadership is None else leadership.leader_epoch
        for broker_id in broker_ids:
            stopped = self._stopped.setdefault(broker_id, {})
            former = stopped.get(topic_partition)
            deletes = delete or (former is not None and former.delete)
            stopped[topic_partition] = StoppedReplica(topic_partition, leader_epoch, deletes)

    def add_update_metadata(self, broker_ids: Iterable[int], topic: Topic, partition: int) -> None:
        """Brokers are to learn of a partition."""
        self._metadata_brokers.update(broker_ids)
        state = self._state_to_tell(topic, partition)
        if state is not None:
            self._metadata[state.topic_partition] = state

    async def add_full_update_metadata(self, broker_ids: Iterable[int]) -> None:
        """Brokers are to know every topic, and no others: they may have missed deletions."""
        receivers = set(broker_ids)
        for topic in self._context.topics():
            for partition in topic.assignment:
                await self._keep_pace()
                self.add_update_metadata(receivers, topic, partition)
        self._metadata_brokers |= receivers
        self._full_metadata |= receivers

    def mark_leader_and_isr_full(self, broker_ids: Iterable[int]) -> None:
        """This batch names every replica that brokers are to have; they give up any other."""
        self._full_leader_and_isr.update(broker_ids)

    def add_live_brokers(self, broker_ids: Iterable[int]) -> None:
        """Brokers are to learn who is alive, and the states in this batch."""
        self._metadata_brokers.update(broker_ids)

    def _state_to_tell(self, topic: Topic, partition: int) -> PartitionState | None:
        if topic.is_being_deleted:
            return topic.deleted_state(partition, self._context.epoch)
        if partition not in topic.leaderships:
            return None
        offline = self._context.offline_replicas(topic, partition)
        return topic.partition_state(partition, offline=offline)

    def send(self) -> None:
        """Hand everything to the channel, which sends it in order; begin anew."""
        live = self._context.live_brokers
        leader_and_isr, self._leader_and_isr = self._leader_and_isr, {}
        metadata, self._metadata = self._metadata, {}
        metadata_brokers, self._metadata_brokers = self._metadata_brokers, set()
        full_metadata, self._full_metadata = self._full_metadata, set()
        full_leader_and_isr, self._full_leader_and_isr = self._full_leader_and_isr, set()
        stopped, self._stopped = self._stopped, {}
        for broker_id in sorted((leader_and_isr.keys() | full_leader_and_isr) & live.keys()):
            self._send_leader_and_isr(
                broker_id,
                leader_and_isr.get(broker_id, {}),
                is_full=broker_id in full_leader_and_isr,
            )
        self._send_update_metadata(
            sorted(metadata_brokers & live.keys()), tuple(metadata.values()), full_metadata
        )
        for broker_id, partitions in sorted(stopped.items()):
            if broker_id in live:
                self._send_stop_replica(broker_id, partitions)

    def _send_leader_and_isr(
        self, broker_id: int, states: Mapping[TopicPartition, PartitionState], *, is_full: bool
    ) -> None:
        request = BecomeLeaderOrFollower(
            self._controller_id,
            self._context.epoch,
            self._context.live_brokers[broker_id].epoch,
            tuple(states.values()),
            self._live_leaders(states.values()),
            is_full,
        )
        state_change_logger.info(
            "controller %d epoch %d sends LeaderAndIsr with %d partitions to broker %d",
            self._controller_id,
            self._context.epoch,
            len(states),
            broker_id,
        )
        broker = self._context.live_brokers[broker_id]
        self._channel.send(
            broker_id, request, lambda errors: self._on_leader_and_isr(broker, errors)
        )

    def _live_leaders(self, states: Iterable[PartitionState]) -> tuple[LiveBroker, ...]:
        live = self._context.live_brokers
        leaders = {state.leader for state in states}
        return tuple(broker for broker_id, broker in sorted(live.items()) if broker_id in leaders)

    def _send_update_metadata(
        self, broker_ids: list[int], states: tuple[PartitionState, ...], full_metadata: set[int]
    ) -> None:
        live_brokers = tuple(broker for _, broker in sorted(self._context.live_brokers.items()))
        for broker_id in broker_ids:
            request = UpdateMetadata(
                self._controller_id,
                self._context.epoch,
                self._context.live_brokers[broker_id].epoch,
                live_brokers,
                states,
                broker_id in full_metadata,
            )
            self._channel.send(broker_id, request, None)

    def _send_stop_replica(
        self, broker_id: int, partitions: Mapping[TopicPartition, StoppedReplica]
    ) -> None:
        request = StopReplica(
            self._controller_id,
            self._context.epoch,
            self._context.live_brokers[broker_id].epoch,
            tuple(partitions.values()),
        )

        broker = self._context.live_brokers[broker_id]

        def answered(errors: PartitionErrors) -> None:
            self._on_deleted(
                broker,
                {
                    topic_partition: errors.get(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR)
                    for topic_partition, stopped in partitions.items()
                    if stopped.delete
                },
            )

        deletes = any(stopped.delete for stopped in partitions.values())
        self._channel.send(broker_id, request, answered if deletes else None)
