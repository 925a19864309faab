"""Members of a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ....protocol import messages
from ....protocol.codec.message import Message
from ..checkers.group_checker import REBALANCE_TIMEOUT_MS
from ..checkers.log_checker import Key
from .heartbeat_members import HeartbeatMember


class ConsumerMember(HeartbeatMember):
    """One of them, which subscribes to all topics."""

    def heartbeat(self) -> Message:
        """Says which partitions it owns."""
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in self.positions:
            by_topic.setdefault(topic_id, []).append(partition)
        message = messages.ConsumerGroupHeartbeatRequest
        return message(
            group_id=self.group,
            member_id=self.stay,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=self.subscribed_names(),
            topic_partitions=[
                message.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic.items()
            ],
        )

    def assigned(self, answer: Any) -> Collection[Key] | None:
        """What the answer assigns, if it says so."""
        if answer.assignment is None:
            return None
        return {
            (topic.topic_id, partition): None
            for topic in answer.assignment.topic_partitions
            for partition in topic.partitions
        }
