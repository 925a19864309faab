"""One stretch of a log: a file of batches and its indexes (Kafka's LogSegment).

An index is a hint: wherever it says to begin, the batches that lie there say what they are. An
entry read from a file is used only after the batch it names was found where it says; otherwise
the offset and the time index are rebuilt from the batches, and the lookup goes on. So a flipped
bit in an index costs time, never a wrong answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import INT64_MAX
from ...protocol.records.batch import RecordBatch
from ...protocol.records.records import iter_offsets_and_timestamps
from ..errors import CorruptIndexError
from ..file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_path,
)
from ..index.index_file import IndexFile
from ..index.offset_index import OffsetIndex
from ..index.time_index import TimeIndex, TimestampAndOffset
from ..index.transaction_index import TransactionIndex
from ..io.files import Files, StorageFile
from ..io.open_files import OPEN_FILES
from ..log.log_config import LogConfig
from .segment_reader import (
    batch_size_at,
    find_batch,
    iter_headers,
    iter_valid_batches,
    read_batch,
    require_valid_batch,
)

logger = logging.getLogger(__name__)

OFFSETS_MAX = 2**31 - 1
"""How far offsets in a segment may lie from its base: the indexes hold 32 bits."""

RECENT_BATCHES = 256
"""Of this many batches at least, the positions are remembered for tailing readers."""

NO_POSITIONS: Final[dict[int, int]] = {}
"""Of a segment without so many; nothing is written into it."""

UNKNOWN_TIMESTAMP = -2
"""The time index has not been read yet; -1 says that no record has a timestamp."""

StagedBatch = tuple[int, int, int, int, int]
"""Base offset, last offset, max timestamp, size, leader epoch: a plain tuple, since one is
made for every batch appended."""


class LogSegment:
    """Batches from `base_offset` up to the next segment's.

    The file is opened at first use, the indexes are read at first lookup: a broker with
    thousands of idle partitions holds neither.

    Args:
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
        "_index_bytes",
        "_indexes",
        "_is_checked",
        "_is_new",
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
        "offset_of_max_timestamp",
        "roll_after_timestamp",
        "roll_by_clock",
        "segment_ms",
        "size",
        "size_limit",
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
        self._indexes: tuple[OffsetIndex, TimeIndex] | None = None
        self._is_new = is_new
        self._transaction_index: TransactionIndex | None = None
        self._jitter = 0.0
        self._is_checked = is_new
        """Whether this process has written all of it, or read it through with its checksums."""
        self.was_used = False
        self.max_timestamp = -1 if is_new else UNKNOWN_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self._bytes_since_index_entry = 0
        self._recent_positions: dict[int, int] = {}
        self._older_positions = NO_POSITIONS
        self.first_timestamp = -1
        self.size = 0
        self.configure(config)
        if is_new:
            self._log_file = files.open(self.log_path, create=True)
            OPEN_FILES.opened(self, self._log_file)
        else:
            self.size = files.size(self.log_path)

    @property
    def log_path(self) -> str:
        """The file of batches."""
        return segment_path(self.directory, self.base_offset, LOG_SUFFIX)

    @property
    def file(self) -> StorageFile:
        """The file of batches, opened."""
        file = self._log_file
        if file is None:
            file = self._log_file = self._files.open(self.log_path)
            OPEN_FILES.opened(self, file)
        self.was_used = True
        return file

    @property
    def is_open(self) -> bool:
        """Whether it holds its file."""
        return self._log_file is not None

    @property
    def offset_index(self) -> OffsetIndex:
        """Where offsets lie; made at first use."""
        return (self._indexes or self._make_indexes())[0]

    @property
    def time_index(self) -> TimeIndex:
        """From which offsets on times are later; made at first use."""
        return (self._indexes or self._make_indexes())[1]

    def _make_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        files, directory, base_offset = self._files, self.directory, self.base_offset
        offsets_path = segment_path(directory, base_offset, INDEX_SUFFIX)
        times_path = segment_path(directory, base_offset, TIME_INDEX_SUFFIX)
        offset_index, time_index = self._indexes = (
            OffsetIndex(files, offsets_path, base_offset, is_new=self._is_new),
            TimeIndex(files, times_path, base_offset, is_new=self._is_new),
        )
        offset_index.max_bytes = time_index.max_bytes = self._index_bytes
        return self._indexes

    @property
    def transaction_index(self) -> TransactionIndex:
        """The aborted transactions that end here; made at first use."""
        index = self._transaction_index
        if index is None:
            path = segment_path(self.directory, self.base_offset, TRANSACTION_INDEX_SUFFIX)
            index = self._transaction_index = TransactionIndex(self._files, path, self.base_offset)
        return index

    @property
    def has_transaction_index(self) -> bool:
        """Whether it was made: if not, no aborted transaction ends here."""
        return self._transaction_index is not None

    def open_file(self) -> StorageFile:
        """The same for one use: a segment that is closed stays closed."""
        return self._log_file or self._files.open(self.log_path)

    def configure(self, config: LogConfig) -> None:
        """Take over changed limits."""
        self.index_interval_bytes = config.index_interval_bytes
        self._index_bytes = config.segment_index_bytes
        for index in self._indexes or ():
            index.max_bytes = config.segment_index_bytes
        self.size_limit = config.segment_bytes
        jitter_ms_max = min(config.segment_jitter_ms, config.segment_ms)
        self.segment_ms = config.segment_ms - int(self._jitter * jitter_ms_max)
        self._note_first_timestamp(self.first_timestamp)

    def spread(self, jitter: float, config: LogConfig) -> None:
        """Roll earlier by this part, 0 to 1, of `segment.jitter.ms`.

        So the segments of many partitions that were created together are not rolled together.
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
        self.roll_after_timestamp = INT64_MAX if timestamp < 0 else timestamp + self.segment_ms

    def _append_index_entries(self, last_offset: int, position: int) -> None:
        offset_index, time_index = self._indexes or self._make_indexes()
        is_full = offset_index.append(last_offset, position)
        is_full |= time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
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
        if size > self.size_limit or last_offset - self.base_offset > OFFSETS_MAX:
            return True
        if self.roll_by_clock:
            return self.size > 0 and now_ms - self.created_ms > self.segment_ms
        return self.size > 0 and max_timestamp > self.roll_after_timestamp

    def close_for_appends(self) -> None:
        """Make the indexes complete and write them: the segment takes no more batches."""
        if self.load_max_timestamp() >= 0:
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.flush_indexes()

    def flush_indexes(self) -> None:
        """Bring the index files up to date with what is known of them."""
        indexes = self._indexes
        if indexes is None and self._is_new:
            indexes = self._make_indexes()  # they have files from now on, be they empty
        for index in indexes or ():
            index.flush()
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
            KafkaError: CORRUPT_MESSAGE, the file holds something that is no batch.
        """
        position = self._recent_positions.get(offset)
        if position is None:
            position = self._older_positions.get(offset)
            if position is None:
                return self._scan_for(offset)
        return position

    def position_to_read(self, offset: int) -> int:
        """The same for a reader that sends what lies there without decoding it.

        In a segment that an earlier process has written, the batch is checked first: its header
        may be damaged.

        Raises:
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
        start = self.start_position(offset)
        found = find_batch(self.file, start, self.size, offset, self.base_offset)
        return self.size if found is None else found

    def batch_size_at(self, position: int) -> int:
        """The bytes of the batch that begins at `position`."""
        return batch_size_at(self.file, position, self.size)

    def next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on.

        Raises:
            KafkaError: CORRUPT_MESSAGE, the file does not end with a whole batch.
        """
        next_offset = self.base_offset
        end = 0
        for position, batch in iter_headers(self.file, self.start_position(INT64_MAX), self.size):
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
            entry = self._read_max_timestamp()
            self.max_timestamp, self.offset_of_max_timestamp = entry.timestamp, entry.offset
        return self.max_timestamp

    def load_for_appends(self) -> None:
        """Load what the next append needs: it is the active segment of a loaded log."""
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
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
        """
        noted = self._noted_timestamp(timestamp - 1)
        position = self.start_position(max(noted.offset, start_offset))
        for at, header in iter_headers(self.file, position, self.size):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            batch = read_batch(self.file, at, header.size_in_bytes)
            for offset, found in iter_offsets_and_timestamps(batch):
                if found >= timestamp and offset >= start_offset:
                    return TimestampAndOffset(found, offset, batch.partition_leader_epoch)
        return None

    # --- indexes, checked against the batches ------------------------------------------

    def start_position(self, offset: int) -> int:
        """Where to begin looking for an offset: at a batch that does not begin after it."""
        index = self.offset_index
        try:
            slot = index.slot_of(offset)
            if slot < 0:
                return 0
            noted, position = index.entry(slot)
            if index.is_trusted or self._has_batch(position, noted):
                return position
            problem = f"{index.path} has offset {noted} at {position}, where it is not"
        except CorruptIndexError as error:
            problem = str(error)
        if self.rebuild_indexes(problem):
            return index.lookup(offset)
        slot = index.slot_of(offset)
        while slot >= 0:  # entries that name no batch name what is damaged
            noted, position = index.entry(slot)
            if self._has_batch(position, noted):
                return position
            slot -= 1
        return 0

    def _noted_timestamp(self, timestamp: int) -> TimestampAndOffset:
        """The time index's last entry not above `timestamp`, or timestamp -1 at the base offset."""
        index = self.time_index
        try:
            noted = index.lookup(timestamp)
            if index.is_trusted or self._has_timestamp(noted):
                return noted
            problem = f"{index.path} has time {noted.timestamp} at offset {noted.offset}, not so"
        except CorruptIndexError as error:
            problem = str(error)
        self.rebuild_indexes(problem)
        return index.lookup(timestamp)

    def _read_max_timestamp(self) -> TimestampAndOffset:
        """The latest timestamp, with the last offset of the batch that has it first.

        The time index has it up to its last entry. The batches after the last entry of the
        offset index are read too, since the entry that closes a segment may not have reached
        the disk.
        """
        latest = self._noted_timestamp(INT64_MAX)
        start = self.start_position(INT64_MAX)
        with suppress(KafkaError):  # after something that is no batch nothing can be known
            for _, batch in iter_headers(self.open_file(), start, self.size):
                if batch.max_timestamp > latest.timestamp:
                    latest = TimestampAndOffset(batch.max_timestamp, batch.last_offset)
        return latest

    def peek_max_timestamp(self) -> int:
        """The latest timestamp, mostly without reading the indexes into memory.

        The first lookup by time in a log needs it of each segment, of which there may be
        thousands. The last entry of each index tells it, unless an entry does not agree with the
        last batches, or names one before them.
        """
        if self.max_timestamp == UNKNOWN_TIMESTAMP:
            peeked = self._peek()
            if peeked is not None:
                return peeked
        return self.load_max_timestamp()

    def _peek(self) -> int | None:
        start = self.offset_index.peek_last_entry()
        noted = self.time_index.peek_last_entry()
        if start is None or noted is None:
            return None
        start_offset, position = start
        if not 0 <= position < self.size:
            return None
        latest = noted.timestamp
        is_named = position > 0
        is_right = False
        with suppress(KafkaError):
            for _, batch in iter_headers(self.open_file(), position, self.size):
                if is_named and batch.last_offset != start_offset:
                    return None
                is_named = False
                if batch.base_offset <= noted.offset <= batch.last_offset:
                    is_right = batch.max_timestamp == noted.timestamp
                latest = max(latest, batch.max_timestamp)
        return latest if is_right else None

    def _has_batch(self, position: int, offset: int) -> bool:
        """Whether a batch begins there with which, or soon after which, `offset` ends.

        Kafka's entries name the last offset of what was appended at once, which may be several
        batches.
        """
        if not 0 <= position < self.size:
            return False
        next_offset = self.base_offset
        with suppress(KafkaError):
            for _, batch in iter_headers(self.open_file(), position, self.size):
                if not next_offset <= batch.base_offset <= offset:
                    return False
                if batch.last_offset >= offset:
                    return batch.last_offset == offset
                next_offset = batch.next_offset
        return False

    def _has_timestamp(self, noted: TimestampAndOffset) -> bool:
        """Whether the batch that holds the offset has that latest timestamp."""
        if noted.timestamp < 0:
            return noted.offset == self.base_offset
        with suppress(KafkaError):
            batch = self.header_at(noted.offset)
            return (
                batch is not None
                and batch.base_offset <= noted.offset
                and batch.max_timestamp == noted.timestamp
            )
        return False

    def header_at(self, offset: int) -> RecordBatch | None:
        """The header of the first batch that ends at `offset` or later.

        Raises:
            KafkaError: CORRUPT_MESSAGE, something on the way is no batch.
        """
        start = self.start_position(offset)
        for _, batch in iter_headers(self.open_file(), start, self.size):
            if batch.last_offset >= offset:
                return batch
        return None

    def rebuild_indexes(self, problem: str) -> bool:
        """Make the offset and the time index again, by reading all batches.

        If the disk takes no files, the entries are right in memory all the same.

        Args:
            problem: why, for the broker's log.

        Returns:
            Whether that was possible. If the batches themselves are damaged, what the index says
            of those after the damage is all there is to find them by, and it stays.
        """
        offset_index, time_index = self.offset_index, self.time_index
        if offset_index.cannot_be_rebuilt:
            return False
        entries, latest, is_whole = self._index_entries()
        if not is_whole and _is_usable(offset_index) and _is_usable(time_index):
            logger.error("%s, but %s is damaged too", problem, self.log_path)
            offset_index.cannot_be_rebuilt = True
            return False
        logger.warning("index of %s is corrupt, rebuilding it: %s", self.log_path, problem)
        offset_index.reset()
        time_index.reset()
        for offset, position, latest_so_far in entries:
            offset_index.append(offset, position)
            time_index.maybe_append(latest_so_far.timestamp, latest_so_far.offset)
        if latest.timestamp >= 0:
            time_index.maybe_append(latest.timestamp, latest.offset)
        try:
            offset_index.replace_file()
            time_index.replace_file()
        except OSError as error:
            logger.warning("cannot write the indexes of %s: %s", self.log_path, error)
        return True

    def _index_entries(
        self,
    ) -> tuple[list[tuple[int, int, TimestampAndOffset]], TimestampAndOffset, bool]:
        """What the indexes have to hold.

        Returns:
            The last offset of a batch, its position and the latest timestamp up to it, for each
            entry; the latest timestamp of all; whether batches follow each other up to the
            segment's end.
        """
        entries: list[tuple[int, int, TimestampAndOffset]] = []
        latest = TimestampAndOffset(-1, self.base_offset)
        next_offset = self.base_offset
        end = bytes_since_entry = 0
        for position, batch in iter_valid_batches(self.open_file(), self.size):
            if (
                batch.base_offset < next_offset
                or batch.last_offset - self.base_offset > OFFSETS_MAX
            ):
                break
            if batch.max_timestamp > latest.timestamp:
                latest = TimestampAndOffset(batch.max_timestamp, batch.last_offset)
            if bytes_since_entry > self.index_interval_bytes:
                entries.append((batch.last_offset, position, latest))
                bytes_since_entry = 0
            bytes_since_entry += batch.size_in_bytes
            next_offset = batch.next_offset
            end = position + batch.size_in_bytes
        return entries, latest, end == self.size

    # --- truncating --------------------------------------------------------------------

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
        self._older_positions = NO_POSITIONS
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
        self._older_positions = NO_POSITIONS
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

    def keep_cut(self, path: str) -> None:
        """Rename the file of batches out of the log, and remove its indexes.

        Raises:
            OSError: the disk fails; the file may have its new name.
        """
        self._log_file = None
        self._files.rename(self.log_path, path)
        self.delete()

    def mark_deleted(self) -> list[str]:
        """Rename the files as pending deletion.

        Slices handed out stay readable.

        Returns:
            The new paths.

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

    def close(self) -> None:
        """Let go of the file; it closes when no slice needs it any more."""
        self._log_file = None

    def relocate(self, directory: str) -> None:
        """The log's folder has another name; open files stay what they are."""
        self.directory = directory
        if self._indexes is not None:
            for index, suffix in zip(self._indexes, (INDEX_SUFFIX, TIME_INDEX_SUFFIX), strict=True):
                index.path = segment_path(directory, self.base_offset, suffix)
        if self._transaction_index is not None:
            self._transaction_index.path = segment_path(
                directory, self.base_offset, TRANSACTION_INDEX_SUFFIX
            )

    def __repr__(self) -> str:
        return f"LogSegment(base offset {self.base_offset}, {self.size} bytes)"


def _is_usable(index: IndexFile) -> bool:
    try:
        return len(index.entries) > 0
    except CorruptIndexError:
        return False
