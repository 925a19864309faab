"""The aborted transactions of a log, found without asking each of thousands of segments."""

from __future__ import annotations

from bisect import bisect_right

from ..index.transaction_index import AbortedTxn
from ..segment.log_segment import LogSegment
from ..segment.log_segments import LogSegments


class AbortedTransactions:
    """Knows which segments of a log have a transaction index; made with the first."""

    __slots__ = ("_base_offsets", "_changes", "_having")

    def __init__(self) -> None:
        self._having: list[LogSegment] = []
        self._base_offsets: list[int] = []
        self._changes = -1

    def note(self, segment: LogSegment, aborted: AbortedTxn) -> None:
        """A marker in the segment has aborted a transaction.

        Raises:
            OSError: the segment's index cannot be read.
        """
        segment.transaction_index.append(aborted)
        if not self._having or self._having[-1] is not segment:
            self._changes = -1  # looked for again when somebody asks

    def collect(
        self, segments: LogSegments, start_offset: int, upper_offset: int
    ) -> list[AbortedTxn]:
        """Those that reach into a range of offsets, in the order in which they ended.

        Args:
            segments: of the log.
            start_offset: the first offset of the range.
            upper_offset: the first one behind it.

        Raises:
            OSError: the disk fails.
        """
        if self._changes != segments.changes:
            self._having = [segment for segment in segments if segment.has_transaction_index]
            self._base_offsets = [segment.base_offset for segment in self._having]
            self._changes = segments.changes
        found: list[AbortedTxn] = []
        first = max(bisect_right(self._base_offsets, start_offset) - 1, 0)
        for index in range(first, len(self._having)):
            more, is_complete = self._having[index].transaction_index.collect(
                start_offset, upper_offset
            )
            found += more
            if is_complete:
                break
        return found
