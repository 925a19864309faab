"""From where to where a segment has to be read, by its indexes.

An index only saves reading. One that is missing or cannot be true is done without; the batches
themselves decide what belongs to the answer.
"""

from __future__ import annotations

from itertools import pairwise
from struct import error as struct_error

from ...storage.errors import CorruptIndexError
from ...storage.index.offset_index import OffsetIndex
from ...storage.index.time_index import TimeIndex
from ...storage.io.read_only_files import READ_ONLY_FILES
from .folders import Segment

SUFFIX_LENGTH = len(".log")


def is_too_early(segment: Segment, start_ms: int) -> bool:
    """Whether the index says that no record of a segment is as late as that.

    Only of a segment that is not the log's last, whose index may not be complete.
    """
    if segment.is_last or start_ms <= 0:
        return False
    index = TimeIndex(
        READ_ONLY_FILES, _beside(segment, ".timeindex"), segment.base_offset, is_new=False
    )
    try:
        return 0 <= index.last_entry().timestamp < start_ms
    except (CorruptIndexError, OSError, struct_error):
        return False


def cut_positions(
    segment: Segment, first_offset: int, until_offset: int, start_ms: int, slice_bytes: int
) -> list[int]:
    """Where the slices of a segment begin, and behind them where the last one ends.

    Args:
        segment: with at least one byte.
        first_offset: records before it are left out.
        until_offset: nor from it on.
        start_ms: nor anything earlier.
        slice_bytes: about so large is a slice.
    """
    index = OffsetIndex(
        READ_ONLY_FILES, _beside(segment, ".index"), segment.base_offset, is_new=False
    )
    try:
        first = max(first_offset, _offset_by_time(segment, start_ms))
        start = index.lookup(first) if first > segment.base_offset else 0
        entries = [index.entry(slot) for slot in range(len(index))]
    except (CorruptIndexError, OSError, struct_error):
        return [0, segment.size]
    positions = [0, *(position for _, position in entries)]
    if any(later <= earlier for earlier, later in pairwise(positions[1:])):
        return [0, segment.size]
    if positions[-1] >= segment.size:
        return [0, segment.size]
    # The batch of the first entry at or behind the end may hold requested records; the next not.
    behind = [position for offset, position in entries if offset >= until_offset]
    end = behind[1] if len(behind) > 1 else segment.size
    cuts = [start]
    for position in positions:
        if start < position < end and position - cuts[-1] >= slice_bytes:
            cuts.append(position)
    return [*cuts, end]


def _offset_by_time(segment: Segment, start_ms: int) -> int:
    """All records before it are earlier than `start_ms`."""
    if start_ms <= 0:
        return segment.base_offset
    index = TimeIndex(
        READ_ONLY_FILES, _beside(segment, ".timeindex"), segment.base_offset, is_new=False
    )
    return index.lookup(start_ms - 1).offset


def _beside(segment: Segment, suffix: str) -> str:
    return segment.path[:-SUFFIX_LENGTH] + suffix
