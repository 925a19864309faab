"""Timestamps to offsets, one entry every few kilobytes (Kafka's TimeIndex)."""

from __future__ import annotations

from struct import Struct

from ...common.named_tuple import NamedTuple
from ..errors import CorruptIndexError
from .index_file import IndexFile

ENTRY = Struct(">qi")
"""Timestamp in ms, offset relative to the segment's base."""

ENTRY_BYTES = ENTRY.size
RESERVED_BYTES = 2 * ENTRY_BYTES
"""An index with no more free bytes than this counts as full."""


class TimestampAndOffset(NamedTuple):
    """A timestamp in ms since the epoch, and the offset it belongs to."""

    timestamp: int
    offset: int
    leader_epoch: int = -1
    """Of the batch that holds the offset, -1 where it was not looked up."""


class TimeIndex(IndexFile):
    """A `.timeindex` file: no record up to the noted offset is later than the noted time."""

    __slots__ = ()
    ENTRY = ENTRY

    def sanity_check(self) -> None:
        """Refuse a last entry that cannot be one.

        Raises:
            CorruptIndexError: it is earlier than the first, or its offset lies before the
                segment.
        """
        if not len(self):
            return
        last = self.last_entry()
        if last.offset < self.base_offset or last.timestamp < self.entry(0).timestamp:
            raise CorruptIndexError(f"{self.path} ends with the entry {last}")

    def last_entry(self) -> TimestampAndOffset:
        """The latest entry, or timestamp -1 at the base offset."""
        count = len(self)
        return self.entry(count - 1) if count else TimestampAndOffset(-1, self.base_offset)

    def peek_last_entry(self) -> TimestampAndOffset | None:
        """The last entry without reading the file; None if there is none, or it has to be read."""
        last = self.peek_last()
        if not last:
            return None
        timestamp, relative = ENTRY.unpack(last)
        return TimestampAndOffset(timestamp, self.base_offset + relative)

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Note the segment's largest timestamp so far, if it is larger than the noted.

        Returns:
            Whether the index is full now.
        """
        entries = self._entries
        if entries is None:
            entries = self._load()
        size = len(entries)
        if timestamp >= 0 and (
            not size or timestamp > ENTRY.unpack_from(entries, size - ENTRY_BYTES)[0]
        ):
            entries += ENTRY.pack(timestamp, offset - self.base_offset)
            size += ENTRY_BYTES
        return size + RESERVED_BYTES > self.max_bytes

    def lookup(self, timestamp: int) -> TimestampAndOffset:
        """The last entry not above `timestamp`, or timestamp -1 at the base offset."""
        entries = self.entries
        slot = self.slot_at_or_before(
            timestamp, lambda slot: int(ENTRY.unpack_from(entries, slot * ENTRY.size)[0])
        )
        return self.entry(slot) if slot >= 0 else TimestampAndOffset(-1, self.base_offset)

    def entry(self, slot: int) -> TimestampAndOffset:
        """One entry."""
        timestamp, relative = ENTRY.unpack_from(self.entries, slot * ENTRY.size)
        return TimestampAndOffset(timestamp, self.base_offset + relative)

    def truncate_to(self, offset: int) -> None:
        """Drop entries of `offset` and above."""
        entries = self.entries
        slot = self.slot_at_or_before(
            offset - 1 - self.base_offset,
            lambda slot: int(ENTRY.unpack_from(entries, slot * ENTRY.size)[1]),
        )
        self.keep(slot + 1)
