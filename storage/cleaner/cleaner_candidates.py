"""How much of a log can be cleaned, and how much needs it (Kafka's LogCleanerManager)."""

from __future__ import annotations

from typing import NamedTuple

from ...common.sentinels import INT64_MAX
from ..io.files import Files
from ..log.log import Log
from ..segment.log_segment import LogSegment
from ..segment.segment_reader import iter_headers


class CleanableLog(NamedTuple):
    """A log as the cleaner sees it (Kafka's LogToClean)."""

    log: Log
    first_dirty_offset: int
    """From here on nothing was cleaned yet."""
    first_uncleanable_offset: int
    """Where the first segment begins that must be left alone."""
    clean_bytes: int
    cleanable_bytes: int
    """Of dirty segments that may be cleaned."""
    is_overdue: bool
    """Whether `max.compaction.lag.ms` has passed for a record in them."""

    @property
    def dirty_ratio(self) -> float:
        """How much of what a round reads is dirty."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_worth_it(self) -> bool:
        """Whether a round is due."""
        if self.cleanable_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def examine(
    files: Files, log: Log, first_dirty_offset: int, last_stable_offset: int, now_ms: int
) -> CleanableLog:
    """Find out what of a log can be cleaned.

    The active segment cannot, nor what is not replicated or in an open transaction, nor what
    is younger than `min.compaction.lag.ms`.

    Args:
        files: the file system.
        log: its cleanup policy has `compact`.
        first_dirty_offset: from here on nothing was cleaned yet.
        last_stable_offset: not above the high watermark.
        now_ms: the wall time.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a segment holds something that is no batch.
    """
    segments = list(log.segments)
    active_index = len(segments) - 1
    first_dirty_index = log.segments.floor_index(first_dirty_offset)
    dirty_closed = segments[first_dirty_index:active_index]
    limit = min(last_stable_offset, log.segments.active.base_offset)
    lag_ms = max(log.config.min_compaction_lag_ms, 0)
    if lag_ms > 0:
        for segment in dirty_closed:
            if segment.largest_timestamp() > now_ms - lag_ms:
                limit = min(limit, segment.base_offset)
                break
    # A segment is cleaned whole or not at all.
    uncleanable_index = log.segments.floor_index(max(first_dirty_offset, limit))
    return CleanableLog(
        log,
        first_dirty_offset,
        segments[uncleanable_index].base_offset,
        sum(each.size for each in segments if each.base_offset < first_dirty_offset),
        sum(each.size for each in segments[first_dirty_index:uncleanable_index]),
        _is_overdue(files, log, dirty_closed, now_ms),
    )


def _is_overdue(files: Files, log: Log, dirty: list[LogSegment], now_ms: int) -> bool:
    max_lag_ms = log.config.max_compaction_lag_ms
    if max_lag_ms >= INT64_MAX:
        return False
    return any(0 < _first_timestamp(files, segment) < now_ms - max_lag_ms for segment in dirty)


def _first_timestamp(files: Files, segment: LogSegment) -> int:
    """The latest timestamp of a segment's first batch, -1 if there is none."""
    if segment.first_timestamp < 0 and segment.size:
        for _, batch in iter_headers(files.open(segment.log_path), 0, segment.size):
            segment.first_timestamp = batch.max_timestamp
            break
    return segment.first_timestamp
