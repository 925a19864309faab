"""Finding batches in the segments of a log, by offset and by time."""

from __future__ import annotations

from bisect import bisect_left

from ..index.index_check import start_position
from ..index.time_index import TimestampAndOffset
from ..io.file_slice import FileSlice
from ..segment.log_segment import LogSegment
from ..segment.log_segments import LogSegments
from ..segment.segment_timestamps import SegmentTimestamps
from .log_read import LogRead


def read_segments(
    segments: LogSegments,
    start_offset: int,
    max_bytes: int,
    upper_offset: int | None,
    minimum_one_batch: bool,
) -> LogRead:
    """A slice of one segment, from the batch that holds `start_offset` on.

    Args:
        segments: of a log that has `start_offset`.
        start_offset: where to begin.
        max_bytes: where the slice is cut.
        upper_offset: no batch that reaches it is returned; None for all there is.
        minimum_one_batch: return the first batch whatever its size.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a segment holds something that is no batch.
    """
    active = segments.active
    if start_offset >= active.base_offset:
        segment, index = active, -1
    else:
        index = segments.floor_index(start_offset)
        segment = segments[index]
    position = segment.position_to_read(start_offset)
    while position >= segment.size:  # compaction may leave a gap at a segment's end
        if segment is active:
            return LogRead(b"", start_offset)
        index += 1
        segment = segments[index]
        position = segment.position_to_read(start_offset)
    limit = segment.size
    if upper_offset is not None:
        following = None if segment is active else segments[index + 1]
        limit = _limit(segment, following, upper_offset)
    size = limit - position
    if size > max_bytes:
        size = _size_within(segment, position, max_bytes, minimum_one_batch)
    if size <= 0:
        return LogRead(b"", start_offset)
    records = FileSlice(segment.file, position, size)
    return LogRead(records, start_offset, segment.base_offset, position)


def _limit(segment: LogSegment, following: LogSegment | None, upper_offset: int) -> int:
    """Up to which position of a segment readers may see it."""
    if upper_offset <= segment.base_offset:
        return 0
    if following is not None and upper_offset >= following.base_offset:
        return segment.size
    return segment.position_of(upper_offset)


def _size_within(
    segment: LogSegment, position: int, max_bytes: int, minimum_one_batch: bool
) -> int:
    first_bytes = segment.batch_size_at(position)
    if first_bytes <= max_bytes:
        return max_bytes
    return first_bytes if minimum_one_batch else 0


def find_offset_by_timestamp(
    segments: LogSegments, timestamps: SegmentTimestamps, timestamp_ms: int, log_start_offset: int
) -> TimestampAndOffset | None:
    """The first record from the log's start on that is not earlier than `timestamp_ms`.

    Args:
        segments: of the log.
        timestamps: theirs.
        timestamp_ms: since the epoch.
        log_start_offset: of the log.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
    """
    for index in range(timestamps.first_reaching(segments, timestamp_ms), len(segments)):
        segment = segments[index]
        if segment.load_max_timestamp() >= timestamp_ms:
            found = segment.find_offset_by_timestamp(timestamp_ms, log_start_offset)
            if found is not None:
                return found
    return None


def find_max_timestamp(
    segments: LogSegments, timestamps: SegmentTimestamps
) -> TimestampAndOffset | None:
    """The first record that has the latest timestamp of all (KIP-734).

    As Kafka's it may lie before the log's start, and of records without timestamps it is
    the first.

    Args:
        segments: of the log.
        timestamps: theirs.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
    """
    segment = segments[timestamps.latest(segments)]
    return segment.find_offset_by_timestamp(segment.load_max_timestamp(), segment.base_offset)


def upper_bound_of(segments: LogSegments, read: LogRead, log_end_offset: int) -> int:
    """An offset that lies behind all that was read, though not always right behind it.

    The offset index tells it, as of Kafka's OffsetIndex.fetchUpperBoundOffset.

    Args:
        segments: of the log.
        read: something was found, just now.
        log_end_offset: of the log.

    Raises:
        OSError: the disk fails.
    """
    index = segments.floor_index(read.segment_base_offset)
    offset_index = segments[index].offset_index
    slots = range(len(offset_index))
    behind = read.position + len(read.records)
    slot = bisect_left(slots, behind, key=lambda each: offset_index.entry(each)[1])
    if slot < len(slots):
        offset = offset_index.entry(slot)[0]
        if start_position(segments[index], offset) >= behind:  # else the index is damaged
            return offset
    return segments[index + 1].base_offset if index + 1 < len(segments) else log_end_offset
