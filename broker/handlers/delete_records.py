"""DeleteRecords (21), versions 0-2: make records before an offset unreadable (KIP-107).

Behaviour: the log start moves to the offset, -1 meaning the high watermark; whole
segments below it are deleted in time. Answers the new log start.
Version notes: 2 is flexible.
Departures from Kafka: with one replica the answer is complete at once; Kafka waits for
the followers' log starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ErrorCode
from ...storage.topic_partition import TopicPartition
from .registry import handles

if TYPE_CHECKING:
    from ..broker import Broker
    from ..requests import Request


@handles(ApiKey.DELETE_RECORDS, versions="0-2")
def handle_delete_records(broker: Broker, request: Request) -> messages.DeleteRecordsResponse:
    """Advance the log start of every partition named."""
    body: messages.DeleteRecordsRequest = request.body
    response = messages.DeleteRecordsResponse
    allowed = {
        topic.name: broker.authorize(request, "DELETE", "TOPIC", topic.name)
        for topic in body.topics
    }
    results = broker.replica_manager.delete_records(
        {
            TopicPartition(topic.name, partition.partition_index): partition.offset
            for topic in body.topics
            for partition in topic.partitions
            if allowed[topic.name]
        }
    )
    denied = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    topics = []
    for topic in body.topics:
        partitions = []
        for asked in topic.partitions:
            error, low_watermark = results.get(
                TopicPartition(topic.name, asked.partition_index), denied
            )
            partitions.append(
                response.DeleteRecordsPartitionResult(
                    partition_index=asked.partition_index,
                    low_watermark=low_watermark,
                    error_code=error,
                )
            )
        topics.append(response.DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
    return response(topics=topics)
