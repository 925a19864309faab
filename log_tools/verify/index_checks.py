"""Comparing the entries of a segment's indexes with its batches, one batch at a time.

Entries are read a piece at a time and compared with each batch in turn, so neither an index
nor a log has to fit into memory. Missing entries are no damage: indexes are sparse, and what
was not written before a crash is made again. A wrong one makes lookups miss records.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from ...common.sentinels import NO_TIMESTAMP
from ...protocol.records.batch import RecordBatch
from ...storage.index.offset_index import ENTRY as OFFSET_ENTRY
from ...storage.index.time_index import ENTRY as TIME_ENTRY
from ...storage.io.files import Files
from .finding import Finding, FindingKind

ENTRIES_AT_ONCE = 4096

WRONG_ENTRIES_MAX = 5
"""Of one index: after so many, the rest is not compared."""


def iter_entries(files: Files, path: str, entry: Struct) -> Iterator[tuple[int, ...]]:
    """The entries of an index up to the zeros that Kafka makes it larger with ahead.

    Raises:
        ValueError: it ends inside an entry, or entries follow the zeros; the text says so.
    """
    file = files.open(path)
    size = file.size()
    chunk_bytes = ENTRIES_AT_ONCE * entry.size
    zeros_at: int | None = None
    for position in range(0, size, chunk_bytes):
        data = file.read_at(min(chunk_bytes, size - position), position)
        if zeros_at is not None and any(data):
            raise ValueError(f"it has zeros at {zeros_at}, and entries after them")
        whole = len(data) - len(data) % entry.size
        for at in range(0, whole, entry.size) if zeros_at is None else ():
            if not any(data[at : at + entry.size]):
                zeros_at = position + at
                if any(data[at:]):
                    raise ValueError(f"it has zeros at {zeros_at}, and entries after them")
                break
            yield entry.unpack_from(data, at)
        if whole < len(data) and zeros_at is None:
            raise ValueError(f"it ends inside an entry, at {position + whole}")


class IndexCheck:
    """One index of a segment.

    Args:
        path: the index's file, which need not be there.
        base_offset: the segment's.
    """

    KIND: FindingKind
    ENTRY: Struct

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._entries: Iterator[tuple[int, ...]] = iter(())
        self._wrong = 0
        self._slot = -1
        self._next: tuple[int, ...] | None = None
        self._last: tuple[int, ...] | None = None
        self._missing = not files.exists(path)
        if not self._missing:
            self._entries = iter_entries(files, path, self.ENTRY)

    def start(self) -> Iterator[Finding]:
        """Read the first entry."""
        yield from self._advance()

    def batch(self, position: int, batch: RecordBatch) -> Iterator[Finding]:
        """Compare a batch with the entries that name it."""
        raise AssertionError("each index knows what its entries say")

    def skip(self, end_position: int, next_offset: int) -> Iterator[Finding]:
        """Skip the entries of batches that are damaged: they cannot be checked.

        Args:
            end_position: where the next whole batch begins.
            next_offset: its first offset.
        """
        raise AssertionError("each index knows what its entries say")

    def finish(self, *, is_closed: bool, is_empty: bool) -> Iterator[Finding]:
        """The segment has ended: no entry may be left.

        Args:
            is_closed: whether another segment follows, so that the index must be complete.
            is_empty: whether the segment has no batch.
        """
        if self._next is not None:
            yield from self._is_wrong("points behind the last batch")
        if is_closed and self._missing and not is_empty:
            yield Finding(self.KIND, self.path, "the index of a closed segment is missing")

    def _advance(self) -> Iterator[Finding]:
        self._last, self._slot = self._next, self._slot + 1
        try:
            self._next = next(self._entries, None)
        except ValueError as error:
            self._next = None
            yield Finding(self.KIND, self.path, f"the index is damaged: {error}")
            return
        if self._next is not None and self._last is not None and not self._rises():
            yield from self._is_wrong("does not rise above the one before")

    def _rises(self) -> bool:
        assert self._next is not None
        assert self._last is not None
        return self._next[0] > self._last[0] and self._next[1] > self._last[1]

    def _is_wrong(self, what: str) -> Iterator[Finding]:
        """Report the next entry, and stop comparing after a few."""
        if self._next is None:
            return
        self._wrong += 1
        message = f"entry {self._slot} ({self._describe(self._next)}) {what}"
        if self._wrong == WRONG_ENTRIES_MAX:
            message += "; the rest of the index is not compared"
            self._next, self._entries = None, iter(())
        yield Finding(self.KIND, self.path, message, position=self._slot * self.ENTRY.size)

    def _describe(self, entry: tuple[int, ...]) -> str:
        raise AssertionError("each index knows what its entries say")


class OffsetIndexCheck(IndexCheck):
    """Each entry names the position of a batch, and that batch's last offset."""

    KIND = FindingKind.OFFSET_INDEX
    ENTRY = OFFSET_ENTRY

    def batch(self, position: int, batch: RecordBatch) -> Iterator[Finding]:
        """Compare a batch with the entries that name it."""
        while self._next is not None and self._next[1] <= position:
            if self._next[1] < position:
                yield from self._is_wrong("points to where no batch begins")
            elif self._next[0] + self.base_offset != batch.last_offset:
                yield from self._is_wrong(f"points to a batch that ends with {batch.last_offset}")
            yield from self._advance()

    def skip(self, end_position: int, next_offset: int) -> Iterator[Finding]:
        """Skip the entries that point before `end_position`."""
        while self._next is not None and self._next[1] < end_position:
            yield from self._advance()

    def _describe(self, entry: tuple[int, ...]) -> str:
        return f"offset {entry[0] + self.base_offset} at {entry[1]}"


class TimeIndexCheck(IndexCheck):
    """Each entry names a batch by its last offset, and its timestamp, the latest so far."""

    KIND = FindingKind.TIME_INDEX
    ENTRY = TIME_ENTRY

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        super().__init__(files, path, base_offset)
        self._max_timestamp = NO_TIMESTAMP
        self._noted_timestamp = NO_TIMESTAMP

    def batch(self, position: int, batch: RecordBatch) -> Iterator[Finding]:
        """Compare a batch with the entries that name it."""
        self._max_timestamp = max(self._max_timestamp, batch.max_timestamp)
        while self._next is not None and self._next[1] + self.base_offset <= batch.last_offset:
            timestamp, offset = self._next[0], self._next[1] + self.base_offset
            if offset < batch.last_offset:
                yield from self._is_wrong("names an offset that no batch ends with")
            elif timestamp != batch.max_timestamp:
                yield from self._is_wrong(
                    f"names a batch whose latest timestamp is {batch.max_timestamp}"
                )
            elif timestamp < self._max_timestamp:
                yield from self._is_wrong(f"comes after a record of {self._max_timestamp}")
            self._noted_timestamp = max(self._noted_timestamp, timestamp)
            yield from self._advance()

    def skip(self, end_position: int, next_offset: int) -> Iterator[Finding]:
        """Skip the entries that name offsets before `next_offset`."""
        while self._next is not None and self._next[1] + self.base_offset < next_offset:
            self._noted_timestamp = max(self._noted_timestamp, self._next[0])
            yield from self._advance()

    def finish(self, *, is_closed: bool, is_empty: bool) -> Iterator[Finding]:
        """No entry may be left, and a closed segment's last one has its latest timestamp."""
        wrong_before = self._wrong
        for finding in super().finish(is_closed=is_closed, is_empty=is_empty):
            yield finding
            wrong_before = -1
        if is_closed and wrong_before == 0 and self._max_timestamp > max(self._noted_timestamp, 0):
            yield Finding(
                self.KIND,
                self.path,
                f"the index ends with timestamp {self._noted_timestamp}, but the segment has "
                f"records of {self._max_timestamp}: retention and lookups by time go wrong",
            )

    def _describe(self, entry: tuple[int, ...]) -> str:
        return f"timestamp {entry[0]} at offset {entry[1] + self.base_offset}"
