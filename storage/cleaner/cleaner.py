"""Compaction: of each key the latest record stays (Kafka's Cleaner).

A round reads the dirty part of a log and notes the latest offset of each key; then it copies
all segments below the first uncleanable offset and leaves out what is superseded, group by
group. It runs in a thread; after each group the loop swaps the segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...protocol.records.batch import BATCH_HEADER_BYTES, RecordBatch, require_readable_format
from ...protocol.records.records import iter_keys
from ...protocol.records.validation import require_valid_crc
from ..file_names import LOG_SUFFIX, segment_path
from ..index.transaction_index import AbortedTxn
from ..segment.segment_swap import remove_unfinished
from .cleaned_segment import CleanedSegment, CleanedSegmentWriter
from .cleaned_transactions import CleanedTransactions
from .cleaning_plan import CleaningPlan, SourceSegment, group_by_size
from .offset_map import OffsetMap
from .record_filter import RECORDS_BETWEEN_YIELDS, RecordFilter
from .throttler import CleanerThrottler


class CleaningStats(NamedTuple):
    """What a round did (Kafka's CleanerStats)."""

    bytes_before: int
    bytes_after: int
    records_before: int
    records_after: int
    map_utilization: float
    """How full the offset map was, from 0 to 1."""


class CleaningRound:
    """One round on one log. Its methods block, and are called one after another by one thread.

    Args:
        plan: what the loop knows of the log.
        throttler: how fast, and whether to go on.
    """

    def __init__(self, plan: CleaningPlan, throttler: CleanerThrottler) -> None:
        self.plan = plan
        self.end_offset = plan.first_dirty_offset
        """Up to here the log is clean when all groups are swapped in."""
        self._throttler = throttler
        self._transactions = CleanedTransactions()
        self._bytes_after = 0
        self._records_after = 0
        self._bytes_before = 0
        self._map: OffsetMap
        self._filter: RecordFilter

    def prepare(self) -> list[list[SourceSegment]]:
        """Note the latest offset of each key; returns the groups to clean.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD, a batch cannot be read.
            CleaningCancelled: the broker stops, or the log changed.
            OffsetMapTooSmallError: the memory for the offset map holds none.
        """
        plan = self.plan
        remove_unfinished(plan.files, plan.directory)
        settings = plan.settings
        self._map = OffsetMap(
            settings.dedupe_buffer_bytes,
            settings.dedupe_load_factor,
            plan.first_uncleanable_offset - plan.first_dirty_offset,
        )
        self._filter = RecordFilter(plan, self._map, self._transactions, self._throttler)
        self._fill_map()
        self.end_offset = self._map.latest_offset + 1
        return group_by_size(plan, self.end_offset)

    def _fill_map(self) -> None:
        """Read the dirty segments until the map is full (Kafka's Cleaner.buildOffsetMap)."""
        plan = self.plan
        transactions = CleanedTransactions()
        transactions.add(
            _reaching_into(plan.aborted, plan.first_dirty_offset, plan.first_uncleanable_offset)
        )
        for segment in plan.segments:
            if segment.end_offset <= plan.first_dirty_offset:
                continue
            for batch in self._batches_of(segment, plan.first_dirty_offset):
                if batch.is_control:
                    transactions.read_control_batch(batch)
                elif not transactions.read_batch(batch) and not self._map_keys(batch):
                    return
                self._map.latest_offset = batch.last_offset
            self._map.latest_offset = segment.end_offset - 1

    def _map_keys(self, batch: RecordBatch) -> bool:
        """Note a batch's keys; whether the map took all of them."""
        offset_map, first_dirty_offset = self._map, self.plan.first_dirty_offset
        for count, (delta, _, key, _) in enumerate(iter_keys(batch)):
            offset = batch.base_offset + delta
            if key is not None and offset >= first_dirty_offset:
                if offset_map.is_full:
                    return False
                offset_map.put(key, offset)
            if count % RECORDS_BETWEEN_YIELDS == 0:
                self._throttler.yield_interpreter()
        return True

    def clean(self, group: list[SourceSegment]) -> CleanedSegment:
        """Copy what stays of a group into one segment (Kafka's Cleaner.cleanSegments).

        To be called for the groups in order, and no more once one was not swapped in: a
        tombstone must not go before what it deletes.

        Raises:
            OSError: the disk fails; nothing of the new segment is left.
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD, a batch cannot be read.
            CleaningCancelled: the broker stops, or the log changed.
        """
        writer = CleanedSegmentWriter(self.plan, group)
        try:
            self._transactions.cleaned_index = writer.transaction_index
            for segment in group:
                self._transactions.add(
                    _reaching_into(self.plan.aborted, segment.base_offset, segment.end_offset)
                )
                for batch in self._batches_of(segment):
                    kept = self._filter.apply(batch)
                    if kept is not None:
                        self._throttler.maybe_throttle(writer.append(kept))
                self._bytes_before += segment.size
            cleaned = writer.finish()
        except BaseException:
            with suppress(OSError):
                writer.remove_files()
            raise
        self._bytes_after += cleaned.size
        self._records_after += cleaned.records
        return cleaned

    def sync_names(self) -> None:
        """Wait until the names of what was swapped in are on the disk."""
        self.plan.files.sync_directory(self.plan.directory)

    @property
    def keys_max(self) -> int:
        """How many keys the round can tell apart; then it ends before the dirty part does."""
        return self._map.capacity

    @property
    def stats(self) -> CleaningStats:
        """What was done so far."""
        return CleaningStats(
            self._bytes_before,
            self._bytes_after,
            self._filter.records_read,
            self._records_after,
            self._map.utilization,
        )

    def _batches_of(self, segment: SourceSegment, start_offset: int = -1) -> Iterator[RecordBatch]:
        """The batches of a segment, records included, each read whole and checked.

        Args:
            segment: filled by its batches.
            start_offset: batches that end before it are skipped unchecked.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch is torn, fails its checksum, or does not follow
                the one before it.
        """
        path = segment_path(self.plan.directory, segment.base_offset, LOG_SUFFIX)
        file = self.plan.files.open(path)
        end = segment.size
        position = chunk_start = 0
        chunk = b""
        last_offset = -1

        def read(at_least: int) -> bytes:
            size = max(self.plan.settings.io_buffer_bytes, at_least)
            data = file.read_at(min(size, end - position), position)
            self._throttler.maybe_throttle(len(data))
            return data

        while position < end:
            if position - chunk_start + BATCH_HEADER_BYTES > len(chunk):
                chunk, chunk_start = read(BATCH_HEADER_BYTES), position
            if position - chunk_start + BATCH_HEADER_BYTES > len(chunk):
                raise _corrupt(position, "is not whole")
            batch = RecordBatch(chunk, position - chunk_start)
            require_readable_format(batch.magic, batch.batch_length)
            size = batch.size_in_bytes
            if position + size > end:
                raise _corrupt(position, "is not whole")
            if batch.base_offset <= last_offset or batch.last_offset_delta < 0:
                raise _corrupt(
                    position, f"begins at offset {batch.base_offset}, after {last_offset}"
                )
            last_offset = batch.last_offset
            if last_offset >= start_offset:
                if position - chunk_start + size > len(chunk):
                    chunk, chunk_start = read(size), position
                    batch = RecordBatch(chunk)
                require_valid_crc(batch)
                yield batch
                self._throttler.yield_interpreter()
            position += size


def _reaching_into(
    aborted: Iterable[AbortedTxn], start_offset: int, end_offset: int
) -> list[AbortedTxn]:
    return [
        each
        for each in aborted
        if each.last_offset >= start_offset and each.first_offset < end_offset
    ]


def _corrupt(position: int, problem: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at position {position} {problem}")
