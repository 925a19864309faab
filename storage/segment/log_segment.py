"""One stretch of a log: a file of batches and its two indexes (Kafka's LogSegment)."""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from contextlib import suppress

from ...common.errors import ErrorCode, KafkaError
from ...protocol.records.records import iter_offsets_and_timestamps
from ..index.index_check import (
    last_start_position,
    latest_timestamp,
    noted_timestamp,
    start_position,
)
from ..index.offset_index import OffsetIndex
from ..index.time_index import TimeIndex, TimestampAndOffset
from ..index.transaction_index import SUFFIX as TRANSACTION_INDEX_SUFFIX
from ..index.transaction_index import TransactionIndex
from ..io.files import Files, StorageFile
from ..io.open_files import OPEN_FILES
from ..log.log_config import LogConfig
from ..log.staged_appends import StagedBatch
from ..log_manager.deferred_deletion import DELETED_SUFFIX
from .segment_reader import batch_size_at, find_batch, iter_headers, read_batch, require_valid_batch

OFFSETS_MAX = 2**31 - 1
"""How far offsets in a segment may lie from its base: the indexes hold 32 bits."""

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", TRANSACTION_INDEX_SUFFIX)
"""Of the files of one segment, the batches' first."""

RECENT_BATCHES = 256
"""Of this many batches at least, the positions are remembered for tailing readers."""

NEVER_MS = 2**63 - 1

UNKNOWN_TIMESTAMP = -2
"""The time index has not been asked yet; -1 says that no record has a timestamp."""


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """The path of a segment's file: the base offset in twenty digits, and the suffix."""
    return os.path.join(directory, f"{base_offset:020d}{suffix}")


class LogSegment:
    """Batches from `base_offset` up to the next segment's.

    The file is opened at first use, the indexes are read at first lookup: a broker with
    thousands of idle partitions holds neither.

    Args:
        files: the file system.
        directory: the partition's folder.
        base_offset: no batch in it begins before.
        config: interval and size limits.
        now_ms: the wall time it is made or loaded at.
        is_new: makes the files; otherwise they are there.
    """

    __slots__ = (
        "__weakref__",
        "_bytes_since_index_entry",
        "_files",
        "_is_checked",
        "_jitter",
        "_log_file",
        "_older_positions",
        "_recent_positions",
        "_transaction_index",
        "base_offset",
        "created_ms",
        "directory",
        "first_timestamp",
        "index_interval_bytes",
        "max_timestamp",
        "offset_index",
        "offset_of_max_timestamp",
        "roll_after_timestamp",
        "roll_by_clock",
        "segment_ms",
        "size",
        "size_limit",
        "time_index",
        "was_used",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        *,
        is_new: bool,
    ) -> None:
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = now_ms
        self._log_file: StorageFile | None = None
        index_path = segment_path(directory, base_offset, ".index")
        time_path = segment_path(directory, base_offset, ".timeindex")
        self.offset_index = OffsetIndex(files, index_path, base_offset, is_new=is_new)
        self.time_index = TimeIndex(files, time_path, base_offset, is_new=is_new)
        self._transaction_index: TransactionIndex | None = None
        self._jitter = 0.0
        self._is_checked = is_new
        """Whether this process has written all of it, or read it through with its checksums."""
        self.was_used = False
        self.max_timestamp = -1 if is_new else UNKNOWN_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self._bytes_since_index_entry = 0
        self._recent_positions: dict[int, int] = {}
        self._older_positions: dict[int, int] = {}
        self.first_timestamp = -1
        self.size = 0
        self.configure(config)
        if is_new:
            self._log_file = files.open(self.log_path, create=True)
            OPEN_FILES.opened(self)
        else:
            self.size = files.size(self.log_path)

    @property
    def log_path(self) -> str:
        """The file of batches."""
        return segment_path(self.directory, self.base_offset, ".log")

    @property
    def file(self) -> StorageFile:
        """The file of batches, opened."""
        file = self._log_file
        if file is None:
            file = self._log_file = self._files.open(self.log_path)
            OPEN_FILES.opened(self)
        self.was_used = True
        return file

    @property
    def is_open(self) -> bool:
        """Whether it holds its file."""
        return self._log_file is not None

    @property
    def transaction_index(self) -> TransactionIndex:
        """The aborted transactions that end here; made when first asked for."""
        index = self._transaction_index
        if index is None:
            path = segment_path(self.directory, self.base_offset, TRANSACTION_INDEX_SUFFIX)
            index = self._transaction_index = TransactionIndex(self._files, path, self.base_offset)
        return index

    @property
    def has_transaction_index(self) -> bool:
        """Whether it was asked for: if not, no aborted transaction ends here."""
        return self._transaction_index is not None

    def open_file(self) -> StorageFile:
        """The same for one look: a segment that is closed stays so."""
        return self._log_file or self._files.open(self.log_path)

    def configure(self, config: LogConfig) -> None:
        """Take over changed limits."""
        self.index_interval_bytes = config.index_interval_bytes
        self.offset_index.max_bytes = config.segment_index_bytes
        self.time_index.max_bytes = config.segment_index_bytes
        self.size_limit = config.segment_bytes
        jitter_ms_max = min(config.segment_jitter_ms, config.segment_ms)
        self.segment_ms = config.segment_ms - int(self._jitter * jitter_ms_max)
        self._note_first_timestamp(self.first_timestamp)

    def spread(self, jitter: float, config: LogConfig) -> None:
        """Roll earlier by this part, 0 to 1, of `segment.jitter.ms`.

        So the segments of many partitions that were begun together are not rolled together.
        """
        self._jitter = jitter
        if config.segment_jitter_ms:
            self.configure(config)

    # --- growing -----------------------------------------------------------------------

    def published(self, batches: Iterable[StagedBatch]) -> None:
        """Note batches that the file now ends with, in their order."""
        position = self.size
        recent = self._recent_positions
        unindexed = self._bytes_since_index_entry
        for base_offset, last_offset, max_timestamp, size, _ in batches:
            if len(recent) >= RECENT_BATCHES:
                self._older_positions = recent
                recent = self._recent_positions = {}
            recent[base_offset] = position
            if max_timestamp > self.max_timestamp:
                self.max_timestamp = max_timestamp
                self.offset_of_max_timestamp = last_offset
            if position == 0:
                self._note_first_timestamp(max_timestamp)
            if unindexed > self.index_interval_bytes:
                self._append_index_entries(last_offset, position)
                unindexed = 0
            unindexed += size
            position += size
        self._bytes_since_index_entry = unindexed
        self.size = position

    def _note_first_timestamp(self, timestamp: int) -> None:
        """Segments roll by the age of their first batch, or by the clock if it has none."""
        self.first_timestamp = timestamp
        self.roll_by_clock = timestamp < 0
        self.roll_after_timestamp = NEVER_MS if timestamp < 0 else timestamp + self.segment_ms

    def _append_index_entries(self, last_offset: int, position: int) -> None:
        is_full = self.offset_index.append(last_offset, position)
        is_full |= self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        if is_full:
            self.size_limit = 0  # the next batch begins another segment

    def must_roll(self, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool:
        """Whether a batch of this size, time and end belongs into a new segment instead.

        Args:
            size: bytes the segment would hold with it.
            max_timestamp: the batch's latest, in ms.
            last_offset: its last offset.
            now_ms: the wall time.
        """
        return (
            size > self.size_limit
            or last_offset - self.base_offset > OFFSETS_MAX
            or (self.size > 0 and self.has_reached_roll_time(max_timestamp, now_ms))
        )

    def has_reached_roll_time(self, max_timestamp: int, now_ms: int) -> bool:
        """Whether it is older than `segment.ms` as seen from the next batch."""
        if self.roll_by_clock:
            return now_ms - self.created_ms > self.segment_ms
        return max_timestamp > self.roll_after_timestamp

    def close_for_appends(self) -> None:
        """Make the indexes complete and write them: the segment takes no more batches."""
        if self.load_max_timestamp() >= 0:
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.flush_indexes()

    def flush_indexes(self) -> None:
        """Bring the index files up to date with what is known of them."""
        self.offset_index.flush()
        self.time_index.flush()
        if self._transaction_index is not None:
            self._transaction_index.flush()

    def index_paths(self) -> list[str]:
        """The index files that there are once they are flushed."""
        paths = [self.offset_index.path, self.time_index.path]
        if self._transaction_index is not None and self._transaction_index.has_file:
            paths.append(self._transaction_index.path)
        return paths

    # --- looking up --------------------------------------------------------------------

    def position_of(self, offset: int) -> int:
        """Where the first batch lies that ends at `offset` or later; the size if none does.

        Raises:
            OSError: the disk fails.
            KafkaError: CORRUPT_MESSAGE, the file holds something that is no batch.
        """
        position = self._recent_positions.get(offset)
        if position is None:
            position = self._older_positions.get(offset)
            if position is None:
                return self._scan_for(offset)
        return position

    def position_to_read(self, offset: int) -> int:
        """The same for one who is going to send what lies there, and does not look at it.

        Of a segment that an earlier process has written, the batch is checked: what its header
        says may be damaged, and readers are told so once.

        Raises:
            OSError: the disk fails.
            KafkaError: CORRUPT_MESSAGE, the batch or something on the way to it is damaged.
        """
        position = self._recent_positions.get(offset)
        if position is None:
            position = self._older_positions.get(offset)
        if position is None:
            position = self._scan_for(offset)
            if position < self.size and not self._is_checked:
                require_valid_batch(self.file, position, self.size)
        return position

    def _scan_for(self, offset: int) -> int:
        start = start_position(self, offset)
        found = find_batch(self.file, start, self.size, offset, self.base_offset)
        return self.size if found is None else found

    def batch_size_at(self, position: int) -> int:
        """The bytes of the batch that begins at `position`."""
        return batch_size_at(self.file, position, self.size)

    def next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on.

        Raises:
            OSError: the disk fails.
            KafkaError: CORRUPT_MESSAGE, the file does not end with a whole batch.
        """
        next_offset = self.base_offset
        end = 0
        for position, batch in iter_headers(self.file, last_start_position(self), self.size):
            next_offset = batch.next_offset
            end = position + batch.size_in_bytes
        if end != self.size:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{self.log_path} has no batch that ends with it"
            )
        return next_offset

    def load_max_timestamp(self) -> int:
        """The latest timestamp in it, from the time index if it was not written just now."""
        if self.max_timestamp == UNKNOWN_TIMESTAMP:
            entry = latest_timestamp(self)
            self.max_timestamp, self.offset_of_max_timestamp = entry.timestamp, entry.offset
        return self.max_timestamp

    def load_for_appends(self) -> None:
        """Learn what the next append asks about: it is the active segment of a loaded log."""
        self.load_max_timestamp()
        for _, batch in iter_headers(self.file, 0, self.size):
            self._note_first_timestamp(batch.max_timestamp)
            break

    def largest_timestamp(self) -> int:
        """The latest timestamp, or the file's own time if no record has one."""
        timestamp = self.load_max_timestamp()
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.log_path)

    def find_offset_by_timestamp(
        self, timestamp: int, start_offset: int
    ) -> TimestampAndOffset | None:
        """The first record from `start_offset` on that is not earlier than `timestamp`.

        Raises:
            OSError: the disk fails.
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
        """
        noted = noted_timestamp(self, timestamp - 1)
        position = start_position(self, max(noted.offset, start_offset))
        for at, header in iter_headers(self.file, position, self.size):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            batch = read_batch(self.file, at, header.size_in_bytes)
            for offset, found in iter_offsets_and_timestamps(batch):
                if found >= timestamp and offset >= start_offset:
                    return TimestampAndOffset(found, offset, batch.partition_leader_epoch)
        return None

    # --- cutting -----------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Drop the batches that end at `offset` or later; returns the bytes dropped.

        Raises:
            OSError: the disk fails; the segment is as it was.
        """
        self.load_max_timestamp()  # and so the indexes, made again if they are not right
        position = self.position_of(offset)
        dropped = self.size - position
        if dropped:
            self.cut_file(position)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if self._transaction_index is not None:
            self._transaction_index.truncate_to(offset)
        self._recent_positions = {}
        self._older_positions = {}
        self._bytes_since_index_entry = 0
        self.size = position
        self.max_timestamp = UNKNOWN_TIMESTAMP
        self.load_max_timestamp()
        return dropped

    def reset(self) -> None:
        """Forget what is known of the file: it is about to be read through."""
        self.offset_index.reset()
        self.time_index.reset()
        if self._transaction_index is not None:
            self._transaction_index.reset()
        self._recent_positions = {}
        self._older_positions = {}
        self._bytes_since_index_entry = 0
        self.size = 0
        self.max_timestamp = -1
        self.offset_of_max_timestamp = self.base_offset
        self._is_checked = True

    def cut_file(self, size: int | None = None) -> None:
        """Cut the file back to `size`, or to what is published after a write that failed."""
        self.file.truncate(self.size if size is None else size)

    def delete(self) -> None:
        """Remove the files; slices handed out stay readable."""
        self._log_file = None
        for suffix in SEGMENT_SUFFIXES:
            self._files.remove(segment_path(self.directory, self.base_offset, suffix))

    def mark_deleted(self) -> list[str]:
        """Give the files names that say they are on their way out.

        Slices handed out stay readable.

        Returns:
            The new paths, to be removed in time.

        Raises:
            OSError: the disk fails; some may have their new names.
        """
        self._log_file = None
        marked = []
        for suffix in SEGMENT_SUFFIXES:
            path = segment_path(self.directory, self.base_offset, suffix)
            with suppress(FileNotFoundError):  # an index is made when it has something to hold
                self._files.rename(path, path + DELETED_SUFFIX)
                marked.append(path + DELETED_SUFFIX)
        return marked

    def sync(self) -> None:
        """Wait until batches and indexes are on the disk."""
        self.flush_indexes()
        self.file.sync()
        self.offset_index.sync()
        self.time_index.sync()
        if self._transaction_index is not None:
            self._transaction_index.sync()

    def close(self) -> None:
        """Let go of the file; it closes when no slice needs it any more."""
        self._log_file = None

    def __repr__(self) -> str:
        return f"LogSegment(base offset {self.base_offset}, {self.size} bytes)"
