"""Making a log whole after a crash (Kafka's LogLoader.recoverLog).

What was flushed is taken at its word; every segment behind the recovery point is read
through, and the log ends at the first batch that is torn, corrupt or missing. The order of
what is done here is the order in which it is safe to lose power again: first what lies
behind a cut is removed for good, and only then the cut is made.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from ..epoch.leader_epoch_cache import LeaderEpochCache
from ..io.files import Files
from ..segment.log_segment import LogSegment
from .segment_recovery import rebuild_epochs, recover_segment
from .transaction_recovery import ProducerReplay

logger = logging.getLogger(__name__)


def recover_unflushed(
    files: Files,
    segments: Sequence[LogSegment],
    epochs: LeaderEpochCache,
    replay: ProducerReplay,
    *,
    recovery_point: int,
    log_start_offset: int,
    gaps_end: int,
) -> list[LogSegment]:
    """Read through what was not flushed, and cut the log where it is broken.

    Args:
        files: the file system.
        segments: all of the log, in order, at least one.
        epochs: forgets what it knows of the unflushed and learns it from the batches.
        replay: the producers' states meanwhile.
        recovery_point: everything before it is on the disk for sure.
        log_start_offset: segments wholly before it are never read again, so they are not
            looked at: what is torn in them does no harm, and nobody believes what is whole.
        gaps_end: compaction can have taken the last offsets of segments before it. Behind it
            a segment that ends before the next one begins has lost its tail.

    Returns:
        The segments that are left.

    Raises:
        OSError: the disk fails.
    """
    first = _first_unflushed(segments, max(recovery_point, log_start_offset))
    epochs.truncate_from_end(segments[first].base_offset)
    for index in range(first, len(segments)):
        segment = segments[index]
        behind = segments[index + 1 :]
        remove = partial(remove_for_good, files, behind)
        if recover_segment(segment, epochs, replay, before_cut=remove):
            logger.warning(
                "%s is cut to %d bytes, after a crash; %d segments behind it are removed",
                segment.log_path,
                segment.size,
                len(behind),
            )
            return list(segments[: index + 1])
        if not behind:
            break
        end_offset, begin = segment.next_offset(), behind[0].base_offset
        if end_offset > begin or end_offset < begin > gaps_end:
            logger.warning(
                "%s ends at offset %d after a crash, where the next segment begins at %d; %d "
                "segments behind it are removed",
                segment.log_path,
                end_offset,
                begin,
                len(behind),
            )
            remove()
            return list(segments[: index + 1])
    return list(segments)


def recover_epochs(
    segments: Sequence[LogSegment], epochs: LeaderEpochCache, log_start_offset: int
) -> None:
    """Read the leader epochs from the batches if the file does not know the first ones.

    It is missing or damaged then, or tells of a later start of the log than there is.

    Raises:
        OSError: the disk fails.
    """
    if not epochs.entries or epochs.entries[0][1] > log_start_offset:
        rebuild_epochs(segments, epochs, log_start_offset)


def _first_unflushed(segments: Sequence[LogSegment], flushed_end: int) -> int:
    """The first segment that may reach behind `flushed_end`; the last one always may."""
    for index in range(len(segments) - 1):
        if segments[index + 1].base_offset > flushed_end:
            return index
    return len(segments) - 1


def remove_for_good(files: Files, segments: Sequence[LogSegment]) -> None:
    """Remove segments so that no crash brings them back.

    The last goes first: if that is interrupted, those left follow each other.

    Raises:
        OSError: the disk fails.
    """
    for segment in reversed(segments):
        segment.delete()
    if segments:
        files.sync_directory(segments[0].directory)
