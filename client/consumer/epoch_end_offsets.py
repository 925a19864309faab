"""Asking a leader where its log ends an epoch (OffsetForLeaderEpoch): whether it has what was read.

After an unclean election a leader may have less than the one before had handed out, or other
records in their places. Source: KIP-320, Kafka's `OffsetsForLeaderEpochClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import CONSUMER_REPLICA_ID
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ..client import KafkaClient
from ..error_kinds import error_of
from ..metadata.cluster import Node
from .offsets import TopicPartition

FIRST_VERSION_FOR_CONSUMERS = 3
"""Those before need the right of a broker (KIP-430)."""


class RequestedEpoch(NamedTuple):
    """What one partition is looked up by.

    Attributes:
        current_leader_epoch: of the leader that is meant.
        leader_epoch: of the last record that was read.
    """

    current_leader_epoch: int
    leader_epoch: int


class EpochEndOffset(NamedTuple):
    """What a leader answered for one partition.

    Attributes:
        error: NONE, or why there is no answer.
        leader_epoch: the newest in its log that is not beyond the requested one; -1: none is.
        end_offset: behind the last record of that epoch.
    """

    error: ErrorCode
    leader_epoch: int
    end_offset: int

    def failure(self, partition: TopicPartition) -> KafkaError:
        """The error as an exception."""
        topic, index = partition
        return KafkaError(
            self.error,
            f"what was read of partition {index} of topic {topic!r} cannot be validated:"
            f" {self.error.name}",
        )


async def fetch_epoch_end_offsets(
    client: KafkaClient, node: Node, requested: Mapping[TopicPartition, RequestedEpoch]
) -> dict[TopicPartition, EpochEndOffset] | None:
    """Ask one leader; None if it does not answer this to consumers.

    Raises:
        DisconnectedError: nobody answered.
        ClientError: as `NetworkClient.send`.
    """
    version = await client.network.usable_version(node, ApiKey.OFFSET_FOR_LEADER_EPOCH)
    if version < FIRST_VERSION_FOR_CONSUMERS:
        return None
    request = messages.OffsetForLeaderEpochRequest
    topics: dict[str, messages.OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
    for (name, index), epochs in requested.items():
        topic = topics.setdefault(name, request.OffsetForLeaderTopic(topic=name))
        topic.partitions.append(
            request.OffsetForLeaderPartition(
                partition=index,
                current_leader_epoch=epochs.current_leader_epoch,
                leader_epoch=epochs.leader_epoch,
            )
        )
    response = await client.network.send(
        node, request(replica_id=CONSUMER_REPLICA_ID, topics=list(topics.values()))
    )
    return {
        (topic.topic, each.partition): EpochEndOffset(
            error_of(each.error_code), each.leader_epoch, each.end_offset
        )
        for topic in response.topics
        for each in topic.partitions
    }
