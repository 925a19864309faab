"""Each decision to the brokers it concerns (Kafka's ControllerBrokerRequestBatch)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from ...protocol.errors import ErrorCode
from ...replication.partition_state import LEADER_DURING_DELETE, PartitionState
from ...storage.topic_partition import TopicPartition
from ..metadata_cache import MetadataUpdate
from .channel import ControllerChannel, LeaderAndIsr, StopReplica
from .context import ControllerContext, Topic

logger = logging.getLogger(__name__)

DELETED: frozenset[ErrorCode] = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Answers to StopReplica after which a replica's log is gone."""


class Broadcast:
    """Sends what the controller decided, in the name of its epoch.

    Args:
        controller_id: this broker, the active controller.
    """

    def __init__(
        self, controller_id: int, context: ControllerContext, channel: ControllerChannel
    ) -> None:
        self._controller_id = controller_id
        self._context = context
        self._channel = channel

    async def tell(self, states: Sequence[PartitionState]) -> None:
        """First the replicas lead and follow, then all brokers tell clients of it."""
        await self._send_leader_and_isr(states)
        await self.update_metadata(states)

    async def _send_leader_and_isr(self, states: Sequence[PartitionState]) -> None:
        by_broker: dict[int, list[PartitionState]] = {}
        for state in states:
            for replica in state.replicas:
                if replica in self._context.live_brokers:
                    by_broker.setdefault(replica, []).append(state)
        for broker_id, concerned in by_broker.items():
            request = LeaderAndIsr(self._controller_id, self._context.epoch, concerned)
            outcome = await self._channel.send_leader_and_isr(broker_id, request)
            for topic_partition, code in outcome.items():
                if code is not ErrorCode.NONE:
                    logger.error(
                        "broker %d cannot take up %s-%d: %s",
                        broker_id,
                        *topic_partition,
                        code.name,
                    )

    async def update_metadata(self, states: Sequence[PartitionState] = ()) -> None:
        """Tell all brokers who is alive, and these partitions."""
        live_brokers = tuple(self._context.live_brokers.values())
        update = MetadataUpdate(self._controller_id, self._context.epoch, live_brokers, states)
        for broker_id in self._context.live_broker_ids:
            await self._channel.send_update_metadata(broker_id, update)

    async def tell_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Tell all brokers a topic's overrides."""
        for broker_id in self._context.live_broker_ids:
            await self._channel.send_topic_config(broker_id, topic, overrides)

    async def tell_deletion(self, topics: Iterable[Topic]) -> set[str]:
        """No client sees the topics any more; then their logs go.

        Returns:
            The topics of which some replica could not delete its log.
        """
        states: list[PartitionState] = []
        by_broker: dict[int, list[tuple[TopicPartition, bool]]] = {}
        for topic in topics:
            for partition, replicas in topic.assignment.items():
                states.append(_leaving(topic, partition, self._context.epoch))
                for replica in replicas:
                    stopped = (TopicPartition(topic.name, partition), True)
                    by_broker.setdefault(replica, []).append(stopped)
        await self.update_metadata(states)
        failed: set[str] = set()
        for broker_id, partitions in by_broker.items():
            if broker_id not in self._context.live_brokers:
                failed.update(topic_partition.topic for topic_partition, _ in partitions)
                continue
            request = StopReplica(self._controller_id, self._context.epoch, partitions)
            outcome = await self._channel.send_stop_replica(broker_id, request)
            for topic_partition, code in outcome.items():
                if code not in DELETED:
                    logger.error(
                        "broker %d cannot delete %s-%d: %s", broker_id, *topic_partition, code.name
                    )
                    failed.add(topic_partition.topic)
        return failed


def _leaving(topic: Topic, partition: int, controller_epoch: int) -> PartitionState:
    """The state that says that a partition is being deleted."""
    return PartitionState(
        topic.name,
        topic.topic_id,
        partition,
        controller_epoch,
        LEADER_DURING_DELETE,
        LEADER_DURING_DELETE,
        (),
        -1,
        topic.assignment[partition],
    )
