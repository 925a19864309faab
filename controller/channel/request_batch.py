"""What one decision asks of each broker, collected and sent as few requests.

After Kafka's ControllerBrokerRequestBatch. Each broker gets at most one LeaderAndIsr, one
UpdateMetadata and one StopReplica, in this order, so that a leader leads before clients
are told of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from ...common.errors import ErrorCode
from ...common.live_broker import LiveBroker
from ...common.partition_state import PartitionState, StoppedReplica
from ...common.topic_partition import TopicPartition
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
"""Told a broker, in the life that was spoken to, and what it said of each partition."""

LEADER_EPOCH_DURING_DELETE = -2


class ControllerBrokerRequestBatch:
    """Collects; `send` hands over what has come together and begins anew.

    Args:
        controller_id: in whose name.
        on_led: told the answers to LeaderAndIsr.
        on_deleted: told the answers to those StopReplica that delete.
    """

    def __init__(
        self,
        controller_id: int,
        context: ControllerContext,
        channel: ControllerChannel,
        *,
        on_led: BrokerAnswer,
        on_deleted: BrokerAnswer,
    ) -> None:
        self._controller_id = controller_id
        self._context = context
        self._channel = channel
        self._on_led = on_led
        self._on_deleted = on_deleted
        self._led: dict[int, dict[TopicPartition, PartitionState]] = {}
        self._stopped: dict[int, dict[TopicPartition, StoppedReplica]] = {}
        self._told: dict[TopicPartition, PartitionState] = {}
        self._told_brokers: set[int] = set()
        self._told_all: set[int] = set()
        self._led_all: set[int] = set()

    def add_leader_and_isr(
        self, broker_ids: Iterable[int], topic: Topic, partition: int, *, is_new: bool = False
    ) -> None:
        """Brokers are to lead or follow a partition; all brokers learn of its state."""
        state = topic.partition_state(partition, is_new=is_new)
        topic_partition = state.topic_partition
        for broker_id in broker_ids:
            led = self._led.setdefault(broker_id, {})
            former = led.get(topic_partition)
            if former is not None and former.is_new and not is_new:
                led[topic_partition] = state._replace(is_new=True)
            else:
                led[topic_partition] = state
        self.add_update_metadata(self._context.live_brokers, topic, [partition])

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

    def add_update_metadata(
        self, broker_ids: Iterable[int], topic: Topic, partitions: Iterable[int] | None = None
    ) -> None:
        """Brokers are to learn of partitions, of all that a topic has where none are named."""
        self._told_brokers.update(broker_ids)
        for partition in topic.assignment if partitions is None else partitions:
            state = self._state_to_tell(topic, partition)
            if state is not None:
                self._told[state.topic_partition] = state

    def add_full_update_metadata(self, broker_ids: Iterable[int]) -> None:
        """Brokers are to know every topic, and no others: they may have missed deletions."""
        told = set(broker_ids)
        for topic in self._context.topics():
            self.add_update_metadata(told, topic)
        self._told_brokers |= told
        self._told_all |= told

    def mark_leader_and_isr_full(self, broker_ids: Iterable[int]) -> None:
        """This batch names every replica that brokers are to have; they give up any other."""
        self._led_all.update(broker_ids)

    def add_live_brokers(self, broker_ids: Iterable[int]) -> None:
        """Brokers are to learn who is alive, and what else this batch tells of."""
        self._told_brokers.update(broker_ids)

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
        led, self._led = self._led, {}
        told, self._told = self._told, {}
        told_brokers, self._told_brokers = self._told_brokers, set()
        told_all, self._told_all = self._told_all, set()
        led_all, self._led_all = self._led_all, set()
        stopped, self._stopped = self._stopped, {}
        for broker_id in sorted((led.keys() | led_all) & live.keys()):
            self._send_leader_and_isr(
                broker_id, led.get(broker_id, {}), is_full=broker_id in led_all
            )
        self._send_update_metadata(
            sorted(told_brokers & live.keys()), tuple(told.values()), told_all
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
            "controller %d epoch %d tells broker %d to lead or follow %d partitions",
            self._controller_id,
            self._context.epoch,
            broker_id,
            len(states),
        )
        broker = self._context.live_brokers[broker_id]
        self._channel.send(broker_id, request, lambda errors: self._on_led(broker, errors))

    def _live_leaders(self, states: Iterable[PartitionState]) -> tuple[LiveBroker, ...]:
        live = self._context.live_brokers
        leaders = {state.leader for state in states}
        return tuple(broker for broker_id, broker in sorted(live.items()) if broker_id in leaders)

    def _send_update_metadata(
        self, broker_ids: list[int], states: tuple[PartitionState, ...], told_all: set[int]
    ) -> None:
        live_brokers = tuple(broker for _, broker in sorted(self._context.live_brokers.items()))
        for broker_id in broker_ids:
            request = UpdateMetadata(
                self._controller_id,
                self._context.epoch,
                self._context.live_brokers[broker_id].epoch,
                live_brokers,
                states,
                broker_id in told_all,
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
