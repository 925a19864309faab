"""The common base of offset index and time index: sorted entries in a flat file (AbstractIndex).

Entries live in memory in their file form and reach the file only when the segment is
flushed, rolled or closed. Losing the rest to a crash costs nothing: every segment that
was not flushed is read through after one, and its indexes are rebuilt.

When a file is loaded, only its size and its last entry are checked;
`LogSegment` compares each entry with the batches before it is used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from struct import Struct
from typing import ClassVar

from ..errors import CorruptIndexError
from ..io.files import Files

DEFAULT_MAX_BYTES = 10 * 1024 * 1024

NO_FILE = -1
"""In place of a size: there is no file yet, or it is to be replaced."""

UNKNOWN_BYTES = 2**63
"""In place of a size: a write failed halfway, so the file is to be cut first."""


class IndexFile:
    """Entries of one size, sorted, read from their file at first use.

    Args:
        base_offset: the segment's; entries hold offsets relative to it.
        is_new: whether the segment was just made, so there is nothing to read.
    """

    ENTRY: ClassVar[Struct]

    __slots__ = (
        "_entries",
        "_file_bytes",
        "_files",
        "_persisted_bytes",
        "base_offset",
        "cannot_be_rebuilt",
        "entry_bytes",
        "is_trusted",
        "max_bytes",
        "path",
    )

    def __init__(self, files: Files, path: str, base_offset: int, *, is_new: bool) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.entry_bytes = self.ENTRY.size
        self._entries: bytearray | None = bytearray() if is_new else None
        self._persisted_bytes = 0
        """Up to here the file holds what memory holds."""
        self._file_bytes = NO_FILE if is_new else 0
        self.is_trusted = is_new
        """Whether this process has made all entries from batches, none read from the file."""
        self.cannot_be_rebuilt = False
        """Whether the batches are damaged, so that the index is needed to find those after."""
        self.max_bytes = DEFAULT_MAX_BYTES

    @property
    def entries(self) -> bytearray:
        """All entries in file form, loaded if need be.

        Raises:
            CorruptIndexError: the file cannot be what was written.
        """
        entries = self._entries
        if entries is None:
            entries = self._load()
        return entries

    def __len__(self) -> int:
        return len(self.entries) // self.entry_bytes

    def peek_last(self) -> bytes | None:
        """The last entry without reading or keeping the whole file; no bytes if there is none.

        None where the whole file has to be read.
        """
        size = self.entry_bytes
        if self._entries is not None:
            return bytes(self._entries[-size:])
        try:
            file = self._files.open(self.path)
        except FileNotFoundError:
            return None
        file_bytes = file.size()
        if file_bytes == 0:
            return b""
        last = file.read_at(size, file_bytes - size) if file_bytes % size == 0 else b""
        return last if any(last) else None  # zeros at the end: see `_load`

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
        self.is_trusted = True

    def replace_file(self) -> None:
        """Write all entries and wait for the disk: a crash leaves the old file or this.

        Raises:
            OSError: the disk fails; `flush` tries again.
        """
        self._files.write_atomically(self.path, bytes(self.entries), sync=True)
        self._persisted_bytes = self._file_bytes = len(self.entries)

    def sanity_check(self) -> None:
        """Refuse a last entry that cannot be one (Kafka's sanityCheck).

        Raises:
            CorruptIndexError: it says what no segment can hold.
        """

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
        """Read the file, without the zeros of one that was made larger ahead.

        Kafka makes an active segment's index files ten megabytes of zeros and trims them
        when it closes them properly; no real entry is all zeros.
        """
        try:
            data = bytearray(self._files.read_bytes(self.path))
        except FileNotFoundError:
            raise CorruptIndexError(f"{self.path} is missing") from None
        self._file_bytes = len(data)
        size = self.entry_bytes
        if len(data) % size:
            raise CorruptIndexError(f"{self.path} ends inside an entry")
        if data and not any(data[-size:]):
            used = len(data.rstrip(b"\0"))
            del data[(used + size - 1) // size * size :]
        self._entries = data
        self._persisted_bytes = len(data)
        try:
            self.sanity_check()
        except CorruptIndexError:
            self._entries = None
            raise
        return data
