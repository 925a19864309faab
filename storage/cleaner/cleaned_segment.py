"""The segment that a cleaner writes: its files carry `.cleaned` until it is swapped in."""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ..file_names import CLEANED_SUFFIX, LOG_SUFFIX, segment_path
from ..index.offset_index import OffsetIndex
from ..index.time_index import TimeIndex
from ..index.transaction_index import TransactionIndex
from ..io.files import Buffer
from ..segment.log_segment import OFFSETS_MAX
from ..segment.segment_swap import remove_cleaned
from .cleaning_plan import CleaningPlan, SourceSegment
from .record_filter import KeptBatch

POSITION_MAX = 2**31 - 1
"""A segment's file is no larger: the index holds positions in 32 bits."""


class CleanedSegment(NamedTuple):
    """A finished segment, synced, whose files still carry `.cleaned`."""

    base_offset: int
    sources: tuple[SourceSegment, ...]
    """The segments it is to replace."""
    suffixes: tuple[str, ...]
    """Of its files, without `.cleaned`."""
    size: int
    records: int


class CleanedSegmentWriter:
    """Writes batches and indexes as an active segment does (Kafka's LogSegment.append).

    Args:
        sources: the segments whose place it takes.
    """

    def __init__(self, plan: CleaningPlan, sources: list[SourceSegment]) -> None:
        self._plan = plan
        self._sources = tuple(sources)
        self.base_offset = sources[0].base_offset
        self.remove_files()
        self._file = plan.files.open(self._path(LOG_SUFFIX), create=True)
        self._offset_index = OffsetIndex(
            plan.files, self._path(".index"), self.base_offset, is_new=True
        )
        self._time_index = TimeIndex(
            plan.files, self._path(".timeindex"), self.base_offset, is_new=True
        )
        self.transaction_index = TransactionIndex(
            plan.files, self._path(".txnindex"), self.base_offset
        )
        self._buffers: list[Buffer] = []
        self._buffered_bytes = 0
        self._size = 0
        self._records = 0
        self._bytes_since_index_entry = 0
        self._max_timestamp = -1
        self._offset_of_max_timestamp = self.base_offset

    def append(self, batch: KeptBatch) -> int:
        """Add a batch; returns how many bytes went to the file, often none.

        Raises:
            KafkaError: CORRUPT_MESSAGE, it lies too far from the segment's base offset.
        """
        size = len(batch.data)
        if batch.last_offset - self.base_offset > OFFSETS_MAX or self._size + size > POSITION_MAX:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the batch that ends at offset {batch.last_offset} does not fit the segment "
                f"at {self.base_offset}, which has {self._size} bytes",
            )
        if batch.max_timestamp > self._max_timestamp:
            self._max_timestamp = batch.max_timestamp
            self._offset_of_max_timestamp = batch.last_offset
        if self._bytes_since_index_entry > self._plan.index_interval_bytes:
            self._offset_index.append(batch.last_offset, self._size)
            self._time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size
        self._size += size
        self._records += batch.records
        self._buffers.append(batch.data)
        self._buffered_bytes += size
        if self._buffered_bytes >= self._plan.settings.io_buffer_bytes:
            return self._write()
        return 0

    def _write(self) -> int:
        written = self._buffered_bytes
        if written:
            self._file.append(self._buffers, written)
        self._buffers = []
        self._buffered_bytes = 0
        return written

    def finish(self) -> CleanedSegment:
        """Write the rest, and wait until all of it is on the disk, names included."""
        self._write()
        if self._max_timestamp >= 0:
            self._time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
        self._file.sync()
        suffixes = [LOG_SUFFIX]
        for suffix, index in ((".index", self._offset_index), (".timeindex", self._time_index)):
            index.flush()
            index.sync()
            suffixes.append(suffix)
        if len(self.transaction_index):
            self.transaction_index.flush()
            self.transaction_index.sync()
            suffixes.append(".txnindex")
        self._plan.files.sync_directory(self._plan.directory)
        return CleanedSegment(
            self.base_offset,
            self._sources,
            tuple(suffixes),
            self._size,
            self._records,
        )

    def remove_files(self) -> None:
        """Give up: nothing of it stays.

        Raises:
            OSError: the disk fails; the next start removes them.
        """
        remove_cleaned(self._plan.files, self._plan.directory, self.base_offset)

    def _path(self, suffix: str) -> str:
        return segment_path(self._plan.directory, self.base_offset, suffix) + CLEANED_SUFFIX
