"""What stays of a batch (Kafka's LogCleaner record filter and MemoryRecords.filterTo)."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_TIMESTAMP
from ...protocol.records.batch import RecordBatch
from ...protocol.records.records import iter_keys
from .cleaner_pace import CleanerPace
from .cleaner_plan import CleaningPlan
from .cleaner_records import delete_horizon_of, empty_batch, rebuild_batch
from .cleaner_transactions import CleanedTransactions
from .offset_map import OffsetMap

RECORDS_BETWEEN_BREATHS = 64


class BatchRetention(Enum):
    """What becomes of a batch of which no record stays."""

    RETAIN_EMPTY = auto()
    DELETE_EMPTY = auto()


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
        plan: the round.
        offset_map: the latest offset of each key.
        transactions: which transactions were aborted, and what is left of each.
        pace: of the cleaner.
    """

    def __init__(
        self,
        plan: CleaningPlan,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        pace: CleanerPace,
    ) -> None:
        self._plan = plan
        self._map = offset_map
        self._transactions = transactions
        self._pace = pace
        self.records_read = 0
        self.keyless_records = 0
        """Dropped: there should be none in a compacted log."""

    def apply(self, batch: RecordBatch) -> KeptBatch | None:
        """What stays of a batch, records included; None if nothing does.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD, it cannot be decoded.
            CleaningCancelled: there is no use in going on.
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
            if self._retention(batch) is BatchRetention.DELETE_EMPTY:
                return None
            return KeptBatch(empty_batch(batch), batch.last_offset, batch.max_timestamp, 0)
        needs_horizon = horizon_ms is None and (has_empty_transaction or kept.has_tombstones)
        if kept.records == batch.records_count and not needs_horizon:
            start = batch.position
            whole = memoryview(batch.buffer)[start : start + batch.size_in_bytes]
            return KeptBatch(whole, batch.last_offset, batch.max_timestamp, kept.records)
        if needs_horizon:
            horizon_ms = self._plan.now_ms + self._plan.delete_retention_ms
        timestamp = batch.max_timestamp if batch.uses_log_append_time else kept.max_timestamp
        made = rebuild_batch(batch, kept.flags, timestamp, horizon_ms, self._pace)
        return KeptBatch(made, batch.last_offset, timestamp, kept.records)

    def _retention(self, batch: RecordBatch) -> BatchRetention:
        """Empty batches stay for what their headers tell.

        The last one of an active producer has its sequence number and epoch; the last one of
        the round tells where the cleaned part of the log ends.
        """
        if batch.next_offset == self._plan.first_uncleanable_offset:
            return BatchRetention.RETAIN_EMPTY
        last = self._plan.last_records.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return BatchRetention.DELETE_EMPTY
        if last.offset >= 0:
            is_last = batch.last_offset == last.offset
        else:
            is_last = batch.is_control and batch.producer_epoch == last.producer_epoch
        return BatchRetention.RETAIN_EMPTY if is_last else BatchRetention.DELETE_EMPTY

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
            elif key is None:
                self.keyless_records += 1
                stays = False
            else:
                stays = (keeps_tombstones or not is_null) and offset >= self._map.get(key)
            flags.append(stays)
            if stays:
                has_tombstones = has_tombstones or is_null
                max_timestamp = max(max_timestamp, timestamp)
            if len(flags) % RECORDS_BETWEEN_BREATHS == 0:
                self._pace.breathe()
        return _Kept(flags, flags.count(1), has_tombstones, max_timestamp)
