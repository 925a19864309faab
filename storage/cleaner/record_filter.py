"""What stays of a batch (Kafka's Cleaner record filter and MemoryRecords.filterTo).

Records keep their offsets, and their bytes too unless the base timestamp becomes a delete
horizon (KIP-534).
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
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
from ...protocol.records.records import iter_keys
from ...protocol.records.walk import Need, iter_runs
from ...protocol.varints import append_zigzag_varint, read_zigzag_varint
from .cleaned_transactions import CleanedTransactions
from .cleaning_plan import CleaningPlan
from .offset_map import OffsetMap
from .throttler import CleanerThrottler

RECORDS_BETWEEN_YIELDS = 64

KEPT_FLAGS = COMPRESSION_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
KEPT_FLAGS_OF_EMPTY = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


class KeptBatch(NamedTuple):
    """A batch to be written to the cleaned segment."""

    data: memoryview | bytearray
    last_offset: int
    max_timestamp: int
    records: int


class _Kept(NamedTuple):
    """The records of a batch that stay."""

    flags: bytearray
    """A byte for each record, 1 for those that stay."""
    records: int
    has_tombstones: bool
    max_timestamp: int


_NOTHING = _Kept(bytearray(), 0, False, NO_TIMESTAMP)


class RecordFilter:
    """Decides on the batches of one round, which are to be given to it in order.

    Args:
        offset_map: the latest offset of each key.
        transactions: which transactions were aborted, and what is left of each.
        throttler: of the cleaner.
    """

    def __init__(
        self,
        plan: CleaningPlan,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        throttler: CleanerThrottler,
    ) -> None:
        self._plan = plan
        self._map = offset_map
        self._transactions = transactions
        self._throttler = throttler
        self.records_read = 0

    def apply(self, batch: RecordBatch) -> KeptBatch | None:
        """What stays of a batch, records included; None if nothing does.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD, it cannot be decoded.
            CleaningCancelled: the broker stops, or the log changed.
        """
        horizon_ms = delete_horizon_of(batch)
        has_empty_transaction = False
        if batch.is_control:
            has_empty_transaction = self._transactions.read_control_batch(batch)
            drops_all = (
                has_empty_transaction and horizon_ms is not None and horizon_ms <= self._plan.now_ms
            )
        else:
            drops_all = self._transactions.read_batch(batch)
        self.records_read += batch.records_count
        kept = _NOTHING if drops_all else self._choose(batch, horizon_ms)
        if not kept.records:
            if not self._retains_empty(batch):
                return None
            return KeptBatch(_empty_batch(batch), batch.last_offset, batch.max_timestamp, 0)
        needs_horizon = horizon_ms is None and (has_empty_transaction or kept.has_tombstones)
        if kept.records == batch.records_count and not needs_horizon:
            start = batch.position
            whole = memoryview(batch.buffer)[start : start + batch.size_in_bytes]
            return KeptBatch(whole, batch.last_offset, batch.max_timestamp, kept.records)
        if needs_horizon:
            horizon_ms = self._plan.now_ms + self._plan.delete_retention_ms
        timestamp = batch.max_timestamp if batch.uses_log_append_time else kept.max_timestamp
        made = _rebuild_batch(batch, kept.flags, timestamp, horizon_ms, self._throttler)
        return KeptBatch(made, batch.last_offset, timestamp, kept.records)

    def _retains_empty(self, batch: RecordBatch) -> bool:
        """Whether a batch stays without its records (Kafka's BatchRetention.RETAIN_EMPTY).

        The last one of an active producer carries its sequence number and epoch; the last one of
        the round carries the offset at which the cleaned part of the log ends.
        """
        if batch.next_offset == self._plan.first_uncleanable_offset:
            return True
        last = self._plan.last_records.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return False
        if last.offset >= 0:
            return batch.last_offset == last.offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch

    def _choose(self, batch: RecordBatch, horizon_ms: int | None) -> _Kept:
        """Which records stay: the latest of each key, and tombstones for a while."""
        latest_offset = self._map.latest_offset
        is_control = batch.is_control
        keeps_tombstones = horizon_ms is None or self._plan.now_ms < horizon_ms
        flags = bytearray()
        has_tombstones = False
        max_timestamp = NO_TIMESTAMP
        last_delta = -1
        for delta, timestamp, key, is_null in iter_keys(batch):
            if not last_delta < delta <= batch.last_offset_delta:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"the batch at offset {batch.base_offset} has a record at {delta} "
                    f"after one at {last_delta}",
                )
            last_delta = delta
            offset = batch.base_offset + delta
            if is_control or offset > latest_offset:
                stays = True
            elif key is None:  # there should be none in a compacted log
                stays = False
            else:
                stays = (keeps_tombstones or not is_null) and offset >= self._map.get(key)
            flags.append(stays)
            if stays:
                has_tombstones = has_tombstones or is_null
                max_timestamp = max(max_timestamp, timestamp)
            if len(flags) % RECORDS_BETWEEN_YIELDS == 0:
                self._throttler.yield_interpreter()
        return _Kept(flags, flags.count(1), has_tombstones, max_timestamp)


def delete_horizon_of(batch: RecordBatch) -> int | None:
    """When tombstones and markers in a batch may go, if that was decided (KIP-534)."""
    return batch.base_timestamp if batch.attributes & DELETE_HORIZON_FLAG else None


def _rebuild_batch(
    batch: RecordBatch,
    keeps: bytearray,
    max_timestamp: int,
    delete_horizon_ms: int | None,
    throttler: CleanerThrottler,
) -> bytearray:
    """The batch with some of its records only, at their offsets.

    Base offset, last offset, producer's fields, leader epoch and compression stay, so no
    sequence number is lost (Kafka's MemoryRecords.buildRetainedRecordsInto).

    Args:
        batch: the batch as it was.
        keeps: a byte for each record, 1 for those that stay.
        max_timestamp: the latest of those, in ms; of the batch where the broker's time counts.
        delete_horizon_ms: when tombstones and markers in it may go, if it is to say so.
        throttler: of the cleaner.

    Raises:
        KafkaError: CORRUPT_MESSAGE, it cannot be decoded.
        CleaningCancelled: the broker stops, or the log changed.
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
        throttler.yield_interpreter()
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


def _empty_batch(batch: RecordBatch) -> bytearray:
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
