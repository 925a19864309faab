"""ISRs that leaders propose to the controller (KIP-497), as Kafka's brokers do.

This project's own leaders write their ISRs to the store themselves (`IsrWriter`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...common.partition_state import LeaderAndIsr
from ...common.topic_partition import TopicPartition
from ..active_controller import ActiveController
from ..context import Topic
from .leadership_writer import PartitionOf

IsrOutcome: TypeAlias = LeaderAndIsr | ErrorCode
"""What a partition has now, or why its leader's proposal is refused."""


class IsrProposals:
    """What the controller makes of the ISRs that one leader proposes.

    Args:
        active: the controller.
        broker_id: the leader's.
        broker_epoch: of its registration.

    Raises:
        KafkaError: STALE_BROKER_EPOCH, it is not registered so.
    """

    def __init__(self, active: ActiveController, broker_id: int, broker_epoch: int) -> None:
        registered = active.context.live_brokers.get(broker_id)
        if registered is None or registered.epoch != broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        self._active = active
        self._broker_id = broker_id

    async def write(
        self, proposals: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, IsrOutcome]:
        """Write those that may be, and have all brokers hear of them.

        Args:
            proposals: the leadership that each partition is to have, with the epochs that its
                leader knows.
        """
        active, context = self._active, self._active.context
        items: dict[TopicPartition, PartitionOf] = {}
        for name, partition in proposals:
            topic = context.topic(name)
            if topic is not None and partition in topic.assignment:
                items[TopicPartition(name, partition)] = PartitionOf(topic, partition)
        await active.leaderships.read(list(items.values()))

        def decide(topic: Topic, partition: int) -> LeaderAndIsr | None:
            proposed = proposals[TopicPartition(topic.name, partition)]
            current = topic.leaderships[partition]
            if _is_written(proposed, current) or self._refusal(topic, partition, proposed):
                return None
            return current._replace(controller_epoch=context.epoch, isr=proposed.isr)

        changed, _ = await active.leaderships.change(list(items.values()), decide)
        for topic, partition in changed:
            active.batch.add_update_metadata(context.live_brokers, topic, partition)
        active.batch.send()
        outcomes: dict[TopicPartition, IsrOutcome] = {}
        for topic_partition, proposed in proposals.items():
            await active.keep_pace()
            item = items.get(topic_partition)
            outcomes[topic_partition] = self._outcome(item, proposed)
        await active.reassignments.isr_changed(changed)
        return outcomes

    def _outcome(self, item: PartitionOf | None, proposed: LeaderAndIsr) -> IsrOutcome:
        current = None if item is None else item.topic.leaderships.get(item.partition)
        if item is None or current is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if _is_written(proposed, current):
            return current
        return self._refusal(item.topic, item.partition, proposed) or current

    def _refusal(self, topic: Topic, partition: int, proposed: LeaderAndIsr) -> ErrorCode | None:
        """Why a proposal may not be written; None: it may."""
        current = topic.leaderships[partition]
        if (
            proposed.partition_epoch > current.partition_epoch
            or proposed.leader_epoch > current.leader_epoch
        ):
            # The leader knows more than this broker, so another one may be the controller.
            return ErrorCode.NOT_CONTROLLER
        if proposed.leader_epoch < current.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposed.partition_epoch < current.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if (
            current.leader != self._broker_id
            or current.leader not in proposed.isr
            or not set(proposed.isr) <= set(topic.assignment[partition])
        ):
            return ErrorCode.INVALID_REQUEST
        context = self._active.context
        eligible = set(context.live_brokers)
        if current.leader not in context.shutting_down:
            # One that stops itself may hand over to one that stops later.
            eligible -= context.shutting_down
        if not set(proposed.isr) <= eligible:
            return ErrorCode.INELIGIBLE_REPLICA  # KIP-841
        return None


def _is_written(proposed: LeaderAndIsr, current: LeaderAndIsr) -> bool:
    """Whether the store holds what is proposed, maybe by a request whose answer was lost."""
    return (
        proposed.leader == current.leader
        and proposed.leader_epoch == current.leader_epoch
        and proposed.isr == current.isr
        and proposed.partition_epoch <= current.partition_epoch
    )
