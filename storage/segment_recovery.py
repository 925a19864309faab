"""Reading a segment through after a crash: what is whole stays, the rest is cut."""

from __future__ import annotations

from .leader_epoch_cache import LeaderEpochCache
from .log_segment import OFFSETS_MAX, LogSegment
from .segment_reader import iter_valid_batches


def recover_segment(segment: LogSegment, epochs: LeaderEpochCache) -> int:
    """Rebuild a segment's indexes and cut off a torn or corrupt tail.

    Args:
        segment: its size and indexes are what the files say, not to be trusted.
        epochs: learns the leader epochs it does not know yet.

    Returns:
        How many bytes were cut.

    Raises:
        OSError: the disk fails.
    """
    file = segment.file
    end = file.size()
    segment.reset()
    next_offset = segment.base_offset
    for _, batch in iter_valid_batches(file, end):
        last_offset = batch.last_offset
        if batch.base_offset < next_offset or last_offset - segment.base_offset > OFFSETS_MAX:
            break
        epoch = batch.partition_leader_epoch
        if epoch > epochs.latest_epoch:
            epochs.assign(epoch, batch.base_offset)
        segment.published(batch.base_offset, last_offset, batch.max_timestamp, batch.size_in_bytes)
        next_offset = last_offset + 1
    cut_bytes = end - segment.size
    if cut_bytes:
        segment.cut_file()
    segment.close_for_appends()
    return cut_bytes
