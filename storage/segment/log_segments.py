"""The segments of a log in order (Kafka's LogSegments). The last takes the appends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from .log_segment import LogSegment


class LogSegments:
    """Never empty once a log is open; each segment ends where the next begins.

    Attributes:
        active: the last.
        changes: goes up whenever segments are taken out or replaced, not with a new one.
    """

    __slots__ = ("_base_offsets", "_segments", "active", "changes")

    def __init__(self, segments: list[LogSegment]) -> None:
        self._segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self.changes = 0

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, index: int) -> LogSegment:
        return self._segments[index]

    @property
    def first(self) -> LogSegment:
        """The oldest."""
        return self._segments[0]

    @property
    def size(self) -> int:
        """The bytes of all."""
        return sum(segment.size for segment in self._segments)

    def floor_index(self, offset: int) -> int:
        """The index of the segment that `offset` falls into; the first for smaller ones."""
        return max(bisect_right(self._base_offsets, offset) - 1, 0)

    def add(self, segment: LogSegment) -> None:
        """Put a segment behind all others: it takes the appends from now on."""
        assert segment.base_offset > self._base_offsets[-1]
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def remove_first(self, count: int) -> list[LogSegment]:
        """Take out the oldest `count` segments; at least one stays."""
        assert count < len(self._segments)
        removed = self._segments[:count]
        del self._segments[:count]
        del self._base_offsets[:count]
        self.changes += 1
        return removed

    def remove_from(self, offset: int) -> list[LogSegment]:
        """Take out the segments that begin at `offset` or later; at least one stays."""
        index = bisect_left(self._base_offsets, offset)
        assert index > 0
        removed = self._segments[index:]
        del self._segments[index:]
        del self._base_offsets[index:]
        self.active = self._segments[-1]
        self.changes += 1
        return removed

    def replace(self, old: Sequence[LogSegment], segment: LogSegment) -> None:
        """Put one segment in the place of neighbours, the active one not among them."""
        first = self._base_offsets.index(old[0].base_offset)
        end = first + len(old)
        assert self._segments[first:end] == list(old)
        assert end < len(self._segments)
        self._segments[first:end] = [segment]
        self._base_offsets[first:end] = [segment.base_offset]
        self.changes += 1

    def replace_all(self, segment: LogSegment) -> list[LogSegment]:
        """Take out every segment and begin with another."""
        removed = self._segments
        self.changes += 1
        self._segments = [segment]
        self._base_offsets = [segment.base_offset]
        self.active = segment
        return removed
