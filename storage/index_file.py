"""What the offset index and the time index share: sorted entries in a flat file.

Entries live in memory in their file form and reach the file only when the segment is
flushed, rolled or closed. Losing the rest to a crash costs nothing: every segment that
was not flushed is read through after one, and its indexes are made anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from .files import Files

DEFAULT_MAX_BYTES = 10 * 1024 * 1024

NO_FILE = -1
"""In place of a size: there is no file yet, or none worth keeping."""

UNKNOWN_BYTES = 2**63
"""In place of a size: a write failed halfway, so the file is to be cut first."""


class IndexFile:
    """Entries of one size, sorted, read from their file at first use.

    Args:
        files: the file system.
        path: the index's file.
        entry_bytes: the size of an entry.
        is_new: whether the segment was just made, so there is nothing to read.
    """

    __slots__ = (
        "_entries",
        "_file_bytes",
        "_files",
        "_persisted_bytes",
        "entry_bytes",
        "max_bytes",
        "path",
    )

    def __init__(self, files: Files, path: str, entry_bytes: int, *, is_new: bool) -> None:
        self._files = files
        self.path = path
        self.entry_bytes = entry_bytes
        self._entries: bytearray | None = bytearray() if is_new else None
        self._persisted_bytes = 0
        """Up to here the file holds what memory holds."""
        self._file_bytes = NO_FILE if is_new else 0
        self.max_bytes = DEFAULT_MAX_BYTES

    @property
    def is_full(self) -> bool:
        """Whether it holds as many entries as the settings allow, one kept in reserve."""
        return len(self.entries) + 2 * self.entry_bytes > self.max_bytes

    @property
    def entries(self) -> bytearray:
        """All entries in file form, loaded if need be."""
        entries = self._entries
        if entries is None:
            entries = self._load()
        return entries

    def __len__(self) -> int:
        return len(self.entries) // self.entry_bytes

    def slot_at_or_before(self, target: int, key_of: Callable[[int], int]) -> int:
        """The last slot whose key is not above `target`, or -1."""
        return bisect_right(range(len(self)), target, key=key_of) - 1

    def keep(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        size = count * self.entry_bytes
        del self.entries[size:]
        self._persisted_bytes = min(self._persisted_bytes, size)

    def reset(self) -> None:
        """Drop all entries, also those of the file, unread."""
        self._entries = bytearray()
        self._persisted_bytes = 0
        self._file_bytes = NO_FILE

    def flush(self) -> None:
        """Bring the file up to date, making it if there is none."""
        entries = self._entries
        if entries is None or len(entries) == self._persisted_bytes == self._file_bytes:
            return
        file = self._files.open(self.path, create=self._file_bytes == NO_FILE)
        holds_more = self._file_bytes > self._persisted_bytes
        self._file_bytes = UNKNOWN_BYTES  # until the writing has come to its end
        if holds_more:
            file.truncate(self._persisted_bytes)
        if len(entries) > self._persisted_bytes:
            file.append([entries[self._persisted_bytes :]], len(entries) - self._persisted_bytes)
        self._persisted_bytes = self._file_bytes = len(entries)

    def sync(self) -> None:
        """Wait until the file is on the disk."""
        self._files.open(self.path).sync()

    def _load(self) -> bytearray:
        """Read the file; an entry cut short, or the zeros of a file made larger ahead, go.

        Kafka makes an active segment's index files ten megabytes of zeros and trims them
        when it closes them properly; no real entry is all zeros.
        """
        data = bytearray(self._files.read_bytes(self.path))
        self._file_bytes = len(data)
        size = self.entry_bytes
        del data[len(data) // size * size :]
        if data and not any(data[-size:]):
            used = len(data.rstrip(b"\0"))
            del data[(used + size - 1) // size * size :]
        self._entries = data
        self._persisted_bytes = len(data)
        return data
