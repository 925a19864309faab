"""The segments of a log in order (Kafka's LogSegments). The last takes the appends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from ..index.time_index import TimestampAndOffset
from ..index.transaction_index import AbortedTxn
from .log_segment import LogSegment

_base_offset_of = attrgetter("base_offset")


class LogSegments:
    """Never empty once a log is open; each segment ends where the next begins.

    A log may have thousands of segments, so lookups by time and of aborted transactions go by
    caches, which are made at the first lookup.

    Attributes:
        active: the last.
        has_aborted_transactions: whether any segment may have a transaction index.
    """

    __slots__ = (
        "_base_offsets",
        "_latest_timestamps",
        "_segments",
        "_with_aborted",
        "active",
        "has_aborted_transactions",
    )

    def __init__(self, segments: list[LogSegment]) -> None:
        self._segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self.has_aborted_transactions = any(each.has_transaction_index for each in segments)
        self._latest_timestamps: list[int] | None = None
        """The latest timestamp up to each closed segment: they rise, so they are searched."""
        self._with_aborted: list[LogSegment] | None = None
        """The segments with a transaction index, if they are known."""

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
        self._drop_caches()
        return removed

    def remove_from(self, offset: int) -> list[LogSegment]:
        """Take out the segments that begin at `offset` or later; at least one stays."""
        index = bisect_left(self._base_offsets, offset)
        assert index > 0
        removed = self._segments[index:]
        del self._segments[index:]
        del self._base_offsets[index:]
        self.active = self._segments[-1]
        self._drop_caches()
        return removed

    def replace(self, old: Sequence[LogSegment], segment: LogSegment) -> None:
        """Put one segment in the place of neighbours, the active one not among them."""
        first = self._base_offsets.index(old[0].base_offset)
        end = first + len(old)
        assert self._segments[first:end] == list(old)
        assert end < len(self._segments)
        self._segments[first:end] = [segment]
        self._base_offsets[first:end] = [segment.base_offset]
        self._drop_caches()

    def replace_all(self, segment: LogSegment) -> None:
        """Take out every segment and begin with another."""
        self._segments = [segment]
        self._base_offsets = [segment.base_offset]
        self.active = segment
        self._drop_caches()

    def _drop_caches(self) -> None:
        self._latest_timestamps = self._with_aborted = None

    # --- aborted transactions ----------------------------------------------------------

    def append_aborted_transaction(self, aborted: AbortedTxn) -> None:
        """A marker in the active segment has aborted a transaction.

        Raises:
            OSError: the segment's index cannot be read.
        """
        self.active.transaction_index.append(aborted)
        self.has_aborted_transactions = True
        if self._with_aborted is not None and self.active not in self._with_aborted[-1:]:
            self._with_aborted = None

    def aborted_count(self) -> int:
        """How many aborted transactions all transaction indexes name."""
        return sum(
            len(each.transaction_index) for each in self._segments if each.has_transaction_index
        )

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTxn]:
        """Those that reach into a range of offsets, in the order in which they ended.

        Args:
            start_offset: the first offset of the range.
            upper_offset: the first one after it.
        """
        segments = self._with_aborted
        if segments is None:
            segments = [segment for segment in self._segments if segment.has_transaction_index]
            self._with_aborted = segments
        found: list[AbortedTxn] = []
        first = max(bisect_right(segments, start_offset, key=_base_offset_of) - 1, 0)
        for index in range(first, len(segments)):
            more, is_complete = segments[index].transaction_index.collect(
                start_offset, upper_offset
            )
            found += more
            if is_complete:
                break
        return found

    # --- timestamps --------------------------------------------------------------------

    def find_offset_by_timestamp(
        self, timestamp_ms: int, log_start_offset: int
    ) -> TimestampAndOffset | None:
        """The first record from `log_start_offset` on that is not earlier than `timestamp_ms`.

        Segments may hold times in any order: the first that reaches a time is also the first
        up to which the latest timestamp does.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
        """
        first = bisect_left(self._known_timestamps(), timestamp_ms)
        for index in range(first, len(self._segments)):
            segment = self._segments[index]
            if segment.load_max_timestamp() >= timestamp_ms:
                found = segment.find_offset_by_timestamp(timestamp_ms, log_start_offset)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record that has the latest timestamp of all (KIP-734).

        As in Kafka it may lie before the log's start, and of records without timestamps it is
        the first.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
        """
        known = self._known_timestamps()
        index = len(known)
        if known and known[-1] >= self.active.load_max_timestamp():
            index = bisect_left(known, known[-1])
        segment = self._segments[index]
        return segment.find_offset_by_timestamp(segment.load_max_timestamp(), segment.base_offset)

    def _known_timestamps(self) -> list[int]:
        """The cache, extended by the segments that were closed since."""
        known = self._latest_timestamps
        if known is None:
            known = self._latest_timestamps = []
        for index in range(len(known), len(self._segments) - 1):
            timestamp = self._segments[index].peek_max_timestamp()
            known.append(max(timestamp, known[-1]) if known else timestamp)
        return known
