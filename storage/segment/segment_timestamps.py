"""Which segment to look into for a timestamp, without asking each of thousands."""

from __future__ import annotations

from bisect import bisect_left

from ..index.index_check import glance_at_latest_timestamp
from .log_segment import UNKNOWN_TIMESTAMP, LogSegment
from .log_segments import LogSegments


class SegmentTimestamps:
    """The latest timestamp up to each closed segment of a log; they rise, so they are searched.

    Segments may hold times in any order: the first that reaches a time is also the first
    up to which the latest timestamp does.
    """

    __slots__ = ("_changes", "_latest")

    def __init__(self) -> None:
        self._latest: list[int] = []
        self._changes = 0

    def first_reaching(self, segments: LogSegments, timestamp: int) -> int:
        """The index of the first segment that has `timestamp` or a later one.

        That of the active segment if no closed one has it; it may not have it either.

        Raises:
            OSError: the disk fails.
        """
        return bisect_left(self._known(segments), timestamp)

    def latest(self, segments: LogSegments) -> int:
        """The index of the first segment that has the latest timestamp of all.

        Raises:
            OSError: the disk fails.
        """
        known = self._known(segments)
        if known and known[-1] >= segments.active.load_max_timestamp():
            return bisect_left(known, known[-1])
        return len(known)

    def _known(self, segments: LogSegments) -> list[int]:
        """What is known of the closed segments, with those that were closed since."""
        known = self._latest
        if self._changes != segments.changes:
            known.clear()
            self._changes = segments.changes
        for index in range(len(known), len(segments) - 1):
            timestamp = _latest_of(segments[index])
            known.append(max(timestamp, known[-1]) if known else timestamp)
        return known


def _latest_of(segment: LogSegment) -> int:
    """A segment's latest timestamp; its indexes are not read into memory for it."""
    if segment.max_timestamp == UNKNOWN_TIMESTAMP:
        glanced = glance_at_latest_timestamp(segment)
        if glanced is not None:
            return glanced.timestamp
    return segment.load_max_timestamp()
