"""Comparing leader epochs with the batches before their first use, and rebuilding them.

The checkpoint has no checksum. A wrong digit in it would have a follower truncate its log at the
wrong offset, so it is compared with the batches once, at its first use.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise

from ...common.errors import KafkaError
from ...protocol.records.batch import RecordBatch
from ..segment.log_segment import LogSegment
from ..segment.log_segments import LogSegments
from ..segment.segment_reader import iter_headers
from .leader_epoch_file_cache import LeaderEpochFileCache

logger = logging.getLogger(__name__)


def check_epochs(
    segments: LogSegments, epochs: LeaderEpochFileCache, log_start_offset: int, log_end_offset: int
) -> None:
    """Make sure that each epoch begins where its first batch lies, or rebuild the checkpoint.

    Args:
        epochs: read from their file.
        log_start_offset: the first one begins there at the earliest.
        log_end_offset: where the last one ends.
    """
    epochs.is_trusted = True
    try:
        last = _batch_at(segments, log_end_offset - 1) if log_end_offset else None
        is_right = (
            last is None or epochs.epoch_for(last.base_offset) in (-1, last.partition_leader_epoch)
        ) and all(
            _begins(segments, epoch, start, max(before, log_start_offset))
            for (_, before), (epoch, start) in pairwise([(-1, -1), *epochs.entries])
        )
    except KafkaError:
        return  # something in the log is no batch: the checkpoint is the better source
    if is_right:
        return
    logger.warning("leader epoch checkpoint %s is corrupt, rebuilding it", epochs.path)
    rebuild_epochs(segments, epochs, log_start_offset)
    with suppress(OSError):
        epochs.flush()


def _begins(segments: LogSegments, epoch: int, start_offset: int, known_from: int) -> bool:
    """Whether the batches from `start_offset` on are of the epoch, and those before are not.

    After a compaction the first batches of an epoch may be gone, be it all of them.
    """
    first = _batch_at(segments, start_offset)
    if first is not None:
        found = first.partition_leader_epoch
        if found < epoch or (found != epoch and first.base_offset <= start_offset):
            return False
    if start_offset <= known_from:
        return True
    last = _batch_at(segments, start_offset - 1)
    if last is None or last.last_offset >= start_offset:
        return last is None or last.base_offset >= start_offset
    return last.partition_leader_epoch < epoch


def _batch_at(segments: LogSegments, offset: int) -> RecordBatch | None:
    """The header of the first batch that ends at `offset` or later."""
    for index in range(segments.floor_index(offset), len(segments)):
        segment = segments[index]
        position = segment.position_of(offset)
        for _, batch in iter_headers(segment.open_file(), position, segment.size):
            return batch
    return None


def rebuild_epochs(
    segments: Iterable[LogSegment], epochs: LeaderEpochFileCache, log_start_offset: int
) -> None:
    """Read from all batches which leader epoch began where.

    Args:
        segments: of the log, in order.
        epochs: replaced, unless the batches carry no epoch.
        log_start_offset: the first epoch begins there at the earliest.
    """
    is_first = True
    for segment in segments:
        try:
            for _, batch in iter_headers(segment.open_file(), 0, segment.size):
                epoch = batch.partition_leader_epoch
                if batch.last_offset < log_start_offset:
                    continue
                if is_first:
                    if epoch < 0:
                        return
                    epochs.clear()
                    is_first = False
                if epoch > epochs.latest_epoch:
                    epochs.assign(epoch, max(batch.base_offset, log_start_offset))
        except KafkaError:
            continue  # something in it is no batch; the next segment may have more
