"""Batches made of what the cleaner keeps of others.

Records keep their offsets, and their bytes too unless the base timestamp becomes a delete
horizon (KIP-534).
"""

from __future__ import annotations

from ...common.sentinels import NO_TIMESTAMP
from ...protocol.compression.codecs import compress
from ...protocol.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    TRANSACTIONAL_FLAG,
    RecordBatch,
)
from ...protocol.records.builder import write_crc
from ...protocol.records.walk import Need, iter_runs
from ...protocol.varints import append_zigzag_varint, read_zigzag_varint
from .cleaner_pace import CleanerPace

KEPT_FLAGS = COMPRESSION_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
KEPT_FLAGS_OF_EMPTY = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


def delete_horizon_of(batch: RecordBatch) -> int | None:
    """When tombstones and markers in a batch may go, if that was decided (KIP-534)."""
    return batch.base_timestamp if batch.attributes & DELETE_HORIZON_FLAG else None


def rebuild_batch(
    batch: RecordBatch,
    keeps: bytearray,
    max_timestamp: int,
    delete_horizon_ms: int | None,
    pace: CleanerPace,
) -> bytearray:
    """The batch with some of its records only, at their offsets.

    Base offset, last offset, producer's fields, leader epoch and compression stay, so no
    sequence number is lost (Kafka's MemoryRecords.buildRetainedRecordsInto).

    Args:
        batch: the batch as it was.
        keeps: a byte for each record, 1 for those that stay.
        max_timestamp: the latest of those, in ms; of the batch where the broker's time counts.
        delete_horizon_ms: when tombstones and markers in it may go, if it is to say so.
        pace: of the cleaner.

    Raises:
        KafkaError: CORRUPT_MESSAGE, it cannot be decoded.
        CleaningCancelled: there is no use in going on.
    """
    shift = 0
    flags = batch.attributes & KEPT_FLAGS
    base_timestamp = batch.base_timestamp
    if delete_horizon_ms is not None:
        flags |= DELETE_HORIZON_FLAG
        shift = base_timestamp - delete_horizon_ms
        base_timestamp = delete_horizon_ms
    body = bytearray()
    index = 0
    for data, bounds in iter_runs(batch, Need.WHOLE):
        for at in range(0, len(bounds), 2):
            if keeps[index]:
                start, end = bounds[at], bounds[at + 1]
                if shift:
                    _append_shifted(body, data, start, end, shift)
                else:
                    append_zigzag_varint(body, end - start)
                    body += data[start:end]
            index += 1
        pace.breathe()
    return _batch(
        batch,
        compress(batch.compression, body),
        flags,
        base_timestamp,
        max_timestamp,
        keeps.count(1),
    )


def _append_shifted(
    body: bytearray, data: bytes | bytearray | memoryview, start: int, end: int, shift: int
) -> None:
    """A record with its timestamp's delta counted from another base."""
    delta, tail = read_zigzag_varint(data, start + 1)
    head = bytearray([data[start]])
    append_zigzag_varint(head, delta + shift)
    append_zigzag_varint(body, len(head) + end - tail)
    body += head
    body += data[tail:end]


def empty_batch(batch: RecordBatch) -> bytearray:
    """The batch without records: what is kept for its last offset and sequence number."""
    flags = batch.attributes & KEPT_FLAGS_OF_EMPTY
    return _batch(batch, b"", flags, NO_TIMESTAMP, batch.max_timestamp, 0)


def _batch(
    batch: RecordBatch,
    payload: bytes,
    flags: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
) -> bytearray:
    made = bytearray(BATCH_HEADER_BYTES)
    made += payload
    BATCH_HEADER.pack_into(
        made,
        0,
        batch.base_offset,
        len(made) - LOG_OVERHEAD_BYTES,
        batch.partition_leader_epoch,
        MAGIC_V2,
        0,
        flags,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    write_crc(made)
    return made
