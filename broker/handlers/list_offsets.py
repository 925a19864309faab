"""ListOffsets (2), versions 1-11: the offset of a moment, or of an end of the log.

Behaviour: for a timestamp, the first record at or after it; -1 asks for the end that the
isolation level may see, -2 for the start, -3 for the record with the largest timestamp,
-4 for the earliest offset on local disk, -5 for the latest in remote storage, -6 for the
earliest that waits to be copied there. A partition named twice is refused, once.
Version notes: 2 has isolation levels; 4 leader epochs; 5 OFFSET_NOT_AVAILABLE, where earlier
ones get LEADER_NOT_AVAILABLE; 7, 8, 9 and 11 add -3, -4, -5, -6, which versions before them
answer with UNSUPPORTED_VERSION, as all do with other negative numbers.
Departures from Kafka: there is no remote storage, so -4 is -2, and -5 and -6 find nothing,
as in a Kafka without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import DEBUGGING_REPLICA_ID, MAX_TIMESTAMP
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...replication.read.list_offsets import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    NOTHING,
    find_offset,
    isolation_for,
)
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request

if TYPE_CHECKING:
    from ...storage.index.time_index import TimestampAndOffset

FIRST_VERSION_OF = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_LEADER_EPOCHS = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5


@in_steps
def handle_list_offsets(
    context: HandlerContext, request: Request[messages.ListOffsetsRequest]
) -> Steps[messages.ListOffsetsResponse]:
    """Look every partition up on its own."""
    body = request.body
    response = messages.ListOffsetsResponse
    doubled = yield from _named_twice(body)
    answered: set[tuple[str, int]] = set()
    topics = []
    for topic in body.topics:
        is_authorized = context.authorize(request, "DESCRIBE", "TOPIC", topic.name)
        partitions = []
        for requested in topic.partitions:
            yield
            key = (topic.name, requested.partition_index)
            if is_authorized and key in answered:
                continue
            answered.add(key)
            found, error = NOTHING, ErrorCode.NONE
            try:
                if not is_authorized:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if key in doubled:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                found = _look_up(context, request.api_version, topic.name, requested, body)
            except KafkaError as refusal:
                error = _error_for(refusal.code, request.api_version)
            knows_epochs = request.api_version >= FIRST_VERSION_WITH_LEADER_EPOCHS
            partitions.append(
                response.ListOffsetsPartitionResponse(
                    partition_index=requested.partition_index,
                    error_code=error,
                    timestamp=found.timestamp,
                    offset=found.offset,
                    leader_epoch=found.leader_epoch if knows_epochs else -1,
                )
            )
        topics.append(response.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return response(topics=topics)


def _named_twice(body: messages.ListOffsetsRequest) -> Steps[set[tuple[str, int]]]:
    """Partitions that the request names more than once: mostly none, and it names just one."""
    seen: set[tuple[str, int]] = set()
    doubled: set[tuple[str, int]] = set()
    for topic in body.topics:
        for requested in topic.partitions:
            key = (topic.name, requested.partition_index)
            (doubled if key in seen else seen).add(key)
            yield
    return doubled


def _look_up(
    context: HandlerContext,
    version: int,
    topic: str,
    requested: messages.ListOffsetsRequest.ListOffsetsPartition,
    body: messages.ListOffsetsRequest,
) -> TimestampAndOffset:
    timestamp = requested.timestamp
    if timestamp < EARLIEST_PENDING_UPLOAD or version < FIRST_VERSION_OF.get(timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    topic_partition = TopicPartition(topic, requested.partition_index)
    replica_manager = context.replica_manager
    partition = replica_manager.get_partition(topic_partition)
    if partition is None:
        partition = replica_manager.partition_or_error(topic_partition)
    partition.check_leader(
        requested.current_leader_epoch, must_lead=body.replica_id != DEBUGGING_REPLICA_ID
    )
    return find_offset(partition, timestamp, isolation_for(body.replica_id, body.isolation_level))


def _error_for(error: ErrorCode, version: int) -> ErrorCode:
    if (
        error is ErrorCode.OFFSET_NOT_AVAILABLE
        and version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    ):
        return ErrorCode.LEADER_NOT_AVAILABLE
    return error
