"""Which segments have had their time (Kafka's UnifiedLog.deletableSegments)."""

from __future__ import annotations

from ..segment.log_segments import LogSegments
from .log_config import LogConfig


def count_deletable(
    segments: LogSegments,
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments may go.

    Args:
        segments: of the log.
        config: retention by time and by size, where the cleanup policy has `delete`.
        log_start_offset: segments wholly before it go in any case.
        log_end_offset: where the log ends.
        high_watermark: what is not yet replicated stays.
        now_ms: the wall time.

    Returns:
        All of them if even the active one, which holds something, is too old: it has to
        be rolled first.
    """
    is_sized = config.deletes and config.retention_bytes >= 0
    excess_bytes = segments.size - config.retention_bytes if is_sized else -1
    count = 0
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        end_offset = log_end_offset if is_last else segments[index + 1].base_offset
        if high_watermark < end_offset or (is_last and segment.size == 0):
            break
        is_out_of_sight = not is_last and end_offset <= log_start_offset
        is_too_old = (
            config.deletes
            and config.retention_ms >= 0
            and now_ms - segment.largest_timestamp() > config.retention_ms
        )
        is_too_much = segment.size <= excess_bytes
        if not (is_out_of_sight or is_too_old or is_too_much):
            break
        excess_bytes -= segment.size
        count += 1
    return count
