"""Offsets to positions, one entry every few kilobytes (Kafka's OffsetIndex)."""

from __future__ import annotations

from struct import Struct

from ..errors import CorruptIndexError
from .index_file import IndexFile

ENTRY = Struct(">ii")
"""Offset relative to the segment's base, position in its file."""

RESERVED_BYTES = 2 * ENTRY.size
"""An index with no more free bytes than this counts as full."""


class OffsetIndex(IndexFile):
    """A `.index` file: where in the log file to begin looking for an offset."""

    __slots__ = ()
    ENTRY = ENTRY

    def sanity_check(self) -> None:
        """Refuse a last entry that cannot be one.

        Raises:
            CorruptIndexError: its offset lies before the segment, or its position before the
                file.
        """
        count = len(self)
        if count and (self.entry(count - 1)[0] < self.base_offset or self.entry(count - 1)[1] < 0):
            raise CorruptIndexError(f"{self.path} ends with the entry {self.entry(count - 1)}")

    def append(self, offset: int, position: int) -> bool:
        """Note that the batch which ends with `offset` begins at `position`.

        Returns:
            Whether the index is full now.
        """
        entries = self._entries
        if entries is None:
            entries = self._load()
        entries += ENTRY.pack(offset - self.base_offset, position)
        return len(entries) + RESERVED_BYTES > self.max_bytes

    def lookup(self, offset: int) -> int:
        """The position of a batch that does not begin after `offset`; 0 if none is noted."""
        slot = self.slot_of(offset)
        return 0 if slot < 0 else self.entry(slot)[1]

    def entry(self, slot: int) -> tuple[int, int]:
        """The offset and the position of one entry."""
        relative, position = ENTRY.unpack_from(self.entries, slot * ENTRY.size)
        return self.base_offset + relative, position

    def peek_last_entry(self) -> tuple[int, int] | None:
        """The last entry, or the base offset at 0, unread; None if the file has to be read."""
        last = self.peek_last()
        if last is None:
            return None
        relative, position = ENTRY.unpack(last) if last else (0, 0)
        return self.base_offset + relative, position

    def truncate_to(self, offset: int) -> None:
        """Drop entries of `offset` and above."""
        self.keep(self.slot_of(offset - 1) + 1)

    def slot_of(self, offset: int) -> int:
        """The last entry not above `offset`, or -1."""
        entries = self.entries
        return self.slot_at_or_before(
            offset - self.base_offset,
            lambda slot: int(ENTRY.unpack_from(entries, slot * ENTRY.size)[0]),
        )
