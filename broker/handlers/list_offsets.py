"""ListOffsets (2), versions 1-11: the offset of a moment, or of an end of the log.

Behaviour: for a timestamp, the first record at or after it; -1 asks for the end that the
isolation level may see, -2 for the start, -3 for the record with the largest timestamp,
-4 for the earliest offset on local disk, -5 for the latest in remote storage, -6 for the
earliest that waits to be copied there.
Version notes: 2 has isolation levels; 4 leader epochs; 7, 8, 9 and 11 add -3, -4, -5, -6,
which earlier versions answer with UNSUPPORTED_VERSION.
Departures from Kafka: there is no remote storage, so -4 is -2, and -5 and -6 find nothing,
as in a Kafka without it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...replication.partition import FetchIsolation
from ...storage.topic_partition import TopicPartition
from .registry import handles

if TYPE_CHECKING:
    from ..broker import Broker
    from ..requests import Request

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
FIRST_VERSION_OF[EARLIEST_PENDING_UPLOAD] = 11

READ_COMMITTED = 1
NOTHING = (-1, -1, -1)

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch; -1 for what is not known."""


@handles(ApiKey.LIST_OFFSETS, versions="1-11")
def handle_list_offsets(broker: Broker, request: Request) -> messages.ListOffsetsResponse:
    """Look every partition up on its own."""
    body: messages.ListOffsetsRequest = request.body
    response = messages.ListOffsetsResponse
    isolation = (
        FetchIsolation.TRANSACTION_COMMITTED
        if body.isolation_level == READ_COMMITTED
        else FetchIsolation.HIGH_WATERMARK
    )
    named = Counter((t.name, p.partition_index) for t in body.topics for p in t.partitions)
    topics = []
    for topic in body.topics:
        partitions = []
        for asked in topic.partitions:
            found, error = NOTHING, ErrorCode.NONE
            try:
                if named[topic.name, asked.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                if not broker.authorize(request, "DESCRIBE", "TOPIC", topic.name):
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                found = _look_up(broker, request.api_version, topic.name, asked, isolation)
            except KafkaError as refusal:
                error = refusal.code
            partitions.append(
                response.ListOffsetsPartitionResponse(
                    partition_index=asked.partition_index,
                    error_code=error,
                    timestamp=found[0],
                    offset=found[1],
                    leader_epoch=found[2] if request.api_version >= 4 else -1,
                )
            )
        topics.append(response.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return response(topics=topics)


def _look_up(
    broker: Broker, version: int, topic: str, asked: Any, isolation: FetchIsolation
) -> Found:
    timestamp: int = asked.timestamp
    if version < FIRST_VERSION_OF.get(timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = broker.replica_manager.partition_or_error(
        TopicPartition(topic, asked.partition_index)
    )
    partition.check_leader(asked.current_leader_epoch)
    end = partition.readable_end(isolation)
    if timestamp == LATEST:
        return -1, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log_start_offset
        return -1, start, partition.log.epochs.epoch_for(start)
    if timestamp == MAX_TIMESTAMP:
        found = partition.log.max_timestamp(end)
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        found = None
    elif timestamp < 0:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    else:
        found = partition.log.offset_for_timestamp(timestamp, end)
    if found is None:
        return NOTHING
    return found.timestamp, found.offset, found.leader_epoch
