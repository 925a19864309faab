"""What can be asked of a log: batches by offset, offsets by time, what is stable, what aborted."""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ..epoch.epoch_check import check_epochs
from ..index.time_index import TimestampAndOffset
from ..index.transaction_index import AbortedTxn
from ..segment.segment_timestamps import SegmentTimestamps
from .log_appender import LogAppender
from .log_read import LogRead
from .log_reader import find_max_timestamp, find_offset_by_timestamp, read_segments, upper_bound_of


class ReadableLog(LogAppender):
    """The reading half of a log; `Log` adds cutting and the disk."""

    _timestamps: SegmentTimestamps | None = None

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended, and its end is replicated.

        Kafka's rule, but for the high watermark, which may lie before it and is the
        caller's to add.
        """
        first_unstable = self.producers.first_unstable_offset
        if first_unstable is None:
            return self.log_end_offset
        return max(first_unstable, self.log_start_offset)

    def high_watermark_moved(self, offset: int) -> None:
        """All replicas have what lies before `offset`: markers there make what they end stable.

        Whoever keeps the high watermark calls it; while `producers.unreplicated` is empty
        that may be left out.
        """
        self.producers.forget_unreplicated(offset)

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTxn]:
        """The aborted transactions that reach into a range of offsets.

        Args:
            start_offset: the first offset of the range.
            upper_offset: the first one behind it.

        Raises:
            StorageError: the disk fails.
        """
        if self._aborted is None:
            return []
        try:
            return self._aborted.collect(self.segments, start_offset, upper_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error

    def aborted_transactions_in(self, read: LogRead) -> list[AbortedTxn]:
        """Those that a reader of committed records has to leave out of what it read.

        Raises:
            StorageError: the disk fails.
        """
        if self._aborted is None or not len(read.records):
            return []
        try:
            upper_offset = upper_bound_of(self.segments, read, self.log_end_offset)
        except OSError as error:
            raise self._storage_error("read", error) from error
        return self.aborted_transactions(read.first_offset, upper_offset)

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        upper_offset: int | None = None,
        minimum_one_batch: bool = True,
    ) -> LogRead:
        """Batches from the one that holds `start_offset` on, as a slice of one segment.

        Args:
            start_offset: where to begin.
            max_bytes: the slice is cut there, be it inside a batch, as Kafka cuts it. If
                even the first batch is larger, nothing is returned, or that batch whole.
            upper_offset: no batch that reaches it is returned: high watermark, last stable
                offset or log end, which is the default.
            minimum_one_batch: return the first batch whatever its size.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, outside of start and end of the log;
                CORRUPT_MESSAGE, the file holds something that is no batch.
            StorageError: the disk fails.
        """
        end_offset = self.log_end_offset
        if start_offset < self.log_start_offset or start_offset > end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {start_offset} of {self.topic_partition}, which has "
                f"{self.log_start_offset} to {end_offset}",
            )
        if upper_offset is not None:
            if start_offset >= upper_offset:
                return LogRead(b"", start_offset)
            if upper_offset >= end_offset:
                upper_offset = None
        if start_offset == end_offset:
            return LogRead(b"", start_offset)
        try:
            return read_segments(
                self.segments, start_offset, max_bytes, upper_offset, minimum_one_batch
            )
        except OSError as error:
            raise self._storage_error("read", error) from error

    def offset_for_timestamp(
        self, timestamp_ms: int, upper_offset: int | None = None
    ) -> TimestampAndOffset | None:
        """The first record not earlier than `timestamp_ms`, if it is below `upper_offset`.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
            StorageError: the disk fails.
        """
        try:
            found = find_offset_by_timestamp(
                self.segments, self._segment_timestamps(), timestamp_ms, self.log_start_offset
            )
        except OSError as error:
            raise self._storage_error("read", error) from error
        return _below(found, upper_offset)

    def max_timestamp(self, upper_offset: int | None = None) -> TimestampAndOffset | None:
        """The first record that has the latest timestamp of all, if below `upper_offset`.

        As Kafka's it may lie before the log's start, and of records without timestamps it
        is the first, with -1.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
            StorageError: the disk fails.
        """
        try:
            found = find_max_timestamp(self.segments, self._segment_timestamps())
        except OSError as error:
            raise self._storage_error("read", error) from error
        return _below(found, upper_offset)

    def _segment_timestamps(self) -> SegmentTimestamps:
        """Made when first needed: most logs are never asked for a time."""
        if self._timestamps is None:
            self._timestamps = SegmentTimestamps()
        return self._timestamps

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch` and where it ends, or (-1, -1).

        Raises:
            StorageError: the disk fails.
        """
        self._trust_epochs()
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def latest_epoch(self) -> int:
        """The last leader epoch that began in this log, or -1.

        Raises:
            StorageError: the disk fails.
        """
        self._trust_epochs()
        return self.epochs.latest_epoch

    def _trust_epochs(self) -> None:
        """Before epochs are relied upon, those of a file from an earlier process are checked."""
        if self.epochs.is_trusted:
            return
        try:
            bounds = (self.log_start_offset, self.log_end_offset)
            check_epochs(self.segments, self.epochs, *bounds)
        except OSError as error:
            raise self._storage_error("read", error) from error


def _below(found: TimestampAndOffset | None, upper_offset: int | None) -> TimestampAndOffset | None:
    if found is None or (upper_offset is not None and found.offset >= upper_offset):
        return None
    return found
