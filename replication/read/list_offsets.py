"""The offset of a moment, or of an end of a partition (Kafka's fetchOffsetForTimestamp)."""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import (
    CONSUMER_REPLICA_ID,
    EARLIEST_TIMESTAMP,
    ISOLATION_LEVELS,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    READ_COMMITTED,
)
from ...storage.index.time_index import TimestampAndOffset
from ..partition.partition import FetchIsolation, Partition

EARLIEST_LOCAL = -4
"""The first offset on the local disk (KIP-405)."""
LATEST_TIERED = -5
"""The last offset in remote storage (KIP-1005)."""
EARLIEST_PENDING_UPLOAD = -6
"""The first offset that remote storage does not have yet."""

NOTHING = TimestampAndOffset(-1, -1, -1)


def isolation_for(replica_id: int, isolation_level: int) -> FetchIsolation:
    """How far whoever asks may see.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR, there is no such level.
    """
    if replica_id != CONSUMER_REPLICA_ID:
        return FetchIsolation.LOG_END
    if isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if isolation_level == READ_COMMITTED:
        return FetchIsolation.TRANSACTION_COMMITTED
    return FetchIsolation.HIGH_WATERMARK


def find_offset(
    partition: Partition, timestamp: int, isolation: FetchIsolation
) -> TimestampAndOffset:
    """Look one offset up; timestamp and leader epoch are -1 where they are not known.

    Args:
        partition: one that the caller may ask.
        timestamp: in ms since the epoch, or one of the special numbers.
        isolation: a client sees as far as it says; LOG_END is for replicas.

    Returns:
        `NOTHING` if there is no such record, or none that may be seen.

    Raises:
        KafkaError: OFFSET_NOT_AVAILABLE, a new leader does not know yet how far its
            followers are (KIP-207); KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE from the log.
    """
    log = partition.log
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL):
        start = log.log_start_offset
        return TimestampAndOffset(-1, start, log.epochs.epoch_for(start))
    end = partition.readable_end(isolation)
    if timestamp == LATEST_TIMESTAMP:
        _check_high_watermark(partition, isolation)
        return TimestampAndOffset(-1, end, partition.leader_epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING  # there is no remote storage
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp()
    else:
        found = log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end:
        _check_high_watermark(partition, isolation)
        return NOTHING
    return found


def _check_high_watermark(partition: Partition, isolation: FetchIsolation) -> None:
    """Until the high watermark has reached the leader's epoch, the end is unknown to clients."""
    if (
        isolation is not FetchIsolation.LOG_END
        and partition.is_leader
        and partition.leader_epoch_start_offset > partition.high_watermark
    ):
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"the high watermark {partition.high_watermark} of {partition.topic_partition} has "
            f"not reached {partition.leader_epoch_start_offset}, where its leader began",
        )
