"""What Produce's versions allow and answer, apart from what any log says."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...protocol.records.batch import BATCH_HEADER_BYTES, COMPRESSION_MASK, TRANSACTIONAL_FLAG
from ...replication.append import PartitionResponse
from .context import HandlerContext
from .current_leaders import tell_producer
from .requests import Request

if TYPE_CHECKING:
    from ...replication.partition.partition import Partition

FIRST_VERSION_WITH_LOG_START = 5
FIRST_VERSION_WITH_ZSTD = 7
FIRST_FLEXIBLE_VERSION = 9
FIRST_VERSION_WITH_TOPIC_IDS = 13

PartitionKey = tuple[str | bytes, int]
"""Topic name or id, as the request's version names topics, and partition."""

ATTRIBUTES_LOW_BYTE = 22
"""Where in a batch the byte lies that tells its compression and whether it is transactional."""
PRODUCER_AT = 43
"""Where its producer's id and epoch lie."""
ZSTD = 4

_unpack_producer = Struct(">qh").unpack_from


def is_transactional(records: memoryview | None) -> bool:
    """Whether the batch is part of a transaction."""
    return (
        records is not None
        and len(records) > ATTRIBUTES_LOW_BYTE
        and bool(records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG)
    )


def begins_transaction(partition: Partition, records: memoryview) -> bool:
    """Whether the batch is the first of a transaction in the partition, to be verified."""
    if not is_transactional(records) or len(records) < BATCH_HEADER_BYTES:
        return False
    producer_id, producer_epoch = _unpack_producer(records, PRODUCER_AT)
    return not partition.log.producers.has_open_transaction(producer_id, producer_epoch)


def refusal_of(
    version: int, records: memoryview | None, has_transactional_id: bool
) -> PartitionResponse | None:
    """The answer to records that the request may not bring (ProduceRequest.validateRecords)."""
    if records is None or len(records) == 0:
        return PartitionResponse(
            ErrorCode.INVALID_RECORD, error_message="the partition has no record batch"
        )
    if len(records) <= ATTRIBUTES_LOW_BYTE:
        return None  # the log knows what is wrong with so few bytes
    attributes = records[ATTRIBUTES_LOW_BYTE]
    if attributes & TRANSACTIONAL_FLAG and not has_transactional_id:
        return PartitionResponse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if attributes & COMPRESSION_MASK == ZSTD and version < FIRST_VERSION_WITH_ZSTD:
        return PartitionResponse(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            error_message=f"zstd needs Produce version {FIRST_VERSION_WITH_ZSTD} or later",
        )
    return None


def partition_key(
    version: int, topic: messages.ProduceRequest.TopicProduceData, index: int
) -> PartitionKey:
    """What a request calls a partition."""
    return (topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else topic.name, index)


def produce_response(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    topics: Sequence[messages.ProduceRequest.TopicProduceData],
    names: Sequence[str | None],
    results: dict[TopicPartition, PartitionResponse],
    refused: dict[PartitionKey, PartitionResponse],
) -> messages.ProduceResponse:
    """The answer to a request, or to some of its topics.

    Args:
        context: the broker's.
        request: what is answered.
        topics: of its body.
        names: of these topics; None of one that is not known.
        results: what became of the partitions that were appended to.
        refused: of those that were not even tried.
    """
    version = request.api_version
    response = messages.ProduceResponse
    answer = response()
    for topic, name in zip(topics, names, strict=True):
        partitions = []
        for partition in topic.partition_data:
            index = partition.index
            result = refused.get(partition_key(version, topic, index)) if refused else None
            if result is None:
                result = results[TopicPartition(name or "", index)]
            part = partition_response(index, result)
            if result.error and name is not None:
                where = TopicPartition(name, index)
                listener_name = request.connection.listener_name
                tell_producer(context, version, listener_name, answer, part, where)
            partitions.append(part)
        answer.responses.append(
            response.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
        )
    return answer


def partition_response(
    index: int, result: PartitionResponse
) -> messages.ProduceResponse.PartitionProduceResponse:
    """One partition's part of an answer."""
    response = messages.ProduceResponse
    return response.PartitionProduceResponse(
        index=index,
        error_code=result.error,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
        record_errors=[
            response.BatchIndexAndErrorMessage(
                batch_index=error.batch_index, batch_index_error_message=error.message
            )
            for error in result.record_errors
        ],
        error_message=result.error_message,
    )
