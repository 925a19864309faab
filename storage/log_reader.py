"""Finding batches in the segments of a log, by offset and by time."""

from __future__ import annotations

from .file_slice import FileSlice
from .log_read import LogRead
from .log_segment import LogSegment
from .log_segments import LogSegments
from .time_index import TimestampAndOffset


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
        segment, index = active, len(segments) - 1
    else:
        index = segments.floor_index(start_offset)
        segment = segments[index]
    position = segment.position_of(start_offset)
    while position >= segment.size:  # compaction may leave a gap at a segment's end
        index += 1
        if index == len(segments):
            return LogRead(b"", start_offset)
        segment = segments[index]
        position = segment.position_of(start_offset)
    limit = segment.size
    if upper_offset is not None:
        limit = _limit(segments, index, upper_offset)
    size = limit - position
    if size > max_bytes:
        size = _size_within(segment, position, max_bytes, minimum_one_batch)
    if size <= 0:
        return LogRead(b"", start_offset)
    records = FileSlice(segment.file, position, size)
    return LogRead(records, start_offset, segment.base_offset, position)


def _limit(segments: LogSegments, index: int, upper_offset: int) -> int:
    """Up to which position of a segment readers may see it."""
    segment = segments[index]
    if upper_offset <= segment.base_offset:
        return 0
    if index + 1 < len(segments) and upper_offset >= segments[index + 1].base_offset:
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
    segments: LogSegments, timestamp_ms: int, log_start_offset: int
) -> TimestampAndOffset | None:
    """The first record not earlier than `timestamp_ms`.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
    """
    for segment in segments:
        if segment.largest_timestamp() >= timestamp_ms:
            found = segment.find_offset_by_timestamp(timestamp_ms, log_start_offset)
            if found is not None:
                return found
    return None


def find_max_timestamp(segments: LogSegments, log_start_offset: int) -> TimestampAndOffset | None:
    """The first record that carries the latest timestamp of all.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a batch cannot be decoded.
    """
    latest = max(segments, key=LogSegment.load_max_timestamp)
    timestamp = latest.load_max_timestamp()
    if timestamp < 0:
        return None
    return latest.find_offset_by_timestamp(timestamp, log_start_offset)
