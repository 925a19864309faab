"""The producer states of a log, from its latest snapshot and the batches after it.

What Kafka's ProducerStateManager does with snapshots and UnifiedLog.rebuildProducerState
with segments. Snapshots only save reading: one that cannot be used is removed and an older
one taken, one that cannot be written is done without.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX
from ..io.files import Files
from ..segment.log_segment import LogSegment
from ..segment.log_segments import LogSegments
from ..segment.segment_reader import iter_headers, read_batch
from .producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    encode_snapshot,
    list_snapshots,
    snapshot_path,
)
from .producer_state import ProducerState
from .producer_state_manager import ProducerStateManager

logger = logging.getLogger(__name__)


def rebuild_producers(
    files: Files,
    directory: str,
    segments: LogSegments,
    producers: ProducerStateManager,
    *,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int = 0,
    expiration_ms: int = INT64_MAX,
) -> None:
    """Replace what is known of the producers by what the disk says.

    Stray snapshots are removed, new ones taken where the last two segments begin and at the
    end of the log.

    Args:
        files: the file system.
        directory: the partition's folder.
        segments: of the log.
        producers: what is replaced.
        log_start_offset: the log's.
        log_end_offset: the log's.
        now_ms: the wall time.
        expiration_ms: producers in the snapshot that were silent for so long stay out.

    Raises:
        OSError: the disk fails.
    """
    base_offsets = [segment.base_offset for segment in segments]
    remove_stray_snapshots(files, directory, segments, log_start_offset, log_end_offset)
    offset, states = load_latest_snapshot(files, directory, log_start_offset, log_end_offset)
    kept = {
        producer_id: state
        for producer_id, state in states.items()
        if not state.is_expired(now_ms, expiration_ms)
    }
    producers.replace_all(kept, offset)
    if offset >= log_end_offset:
        return
    for segment in list(segments)[segments.floor_index(offset) :]:
        if segment.base_offset in base_offsets[-2:]:
            with suppress(OSError):
                take_snapshot(files, directory, producers, segment.base_offset)
        replay_segment(segment, producers, offset)
    with suppress(OSError):
        take_snapshot(files, directory, producers, log_end_offset)


def take_snapshot(
    files: Files, directory: str, producers: ProducerStateManager, offset: int
) -> None:
    """Write the published states down, unless the latest snapshot is as new.

    Args:
        files: the file system.
        directory: the partition's folder.
        producers: have taken in all batches before `offset` and none after.
        offset: where the log ends, or the segment that is full.

    Raises:
        OSError: the disk fails.
    """
    if offset > producers.snapshot_offset:
        files.write_atomically(
            snapshot_path(directory, offset), encode_snapshot(producers.published)
        )
        producers.snapshot_offset = offset


def load_latest_snapshot(
    files: Files, directory: str, log_start_offset: int, log_end_offset: int
) -> tuple[int, dict[int, ProducerState]]:
    """The offset and the states of the latest usable snapshot of a range.

    One that is damaged is removed. The log's start and no states if there is none.

    Raises:
        OSError: the disk fails.
    """
    for offset in reversed(list_snapshots(files, directory)):
        if log_start_offset < offset <= log_end_offset:
            path = snapshot_path(directory, offset)
            try:
                return offset, decode_snapshot(files.read_bytes(path))
            except CorruptSnapshotError as error:
                logger.warning("%s is %s; the log is read instead", path, error)
                files.remove(path)
    return log_start_offset, {}


def remove_stray_snapshots(
    files: Files,
    directory: str,
    segments: LogSegments,
    log_start_offset: int,
    log_end_offset: int,
) -> None:
    """Remove the snapshots that no later start can use.

    Those from after the end of the log or from before its start, and those that belong to no
    segment, except the latest: a clean shutdown leaves one at the end of the log.

    Raises:
        OSError: the disk fails.
    """
    offsets = list_snapshots(files, directory)
    in_range = [offset for offset in offsets if log_start_offset < offset <= log_end_offset]
    kept = {segment.base_offset for segment in segments}.intersection(in_range)
    kept.update(in_range[-1:])
    for offset in offsets:
        if offset not in kept:
            files.remove(snapshot_path(directory, offset))


def replay_segment(segment: LogSegment, producers: ProducerStateManager, offset: int) -> None:
    """Take in a segment's batches from `offset` on; only markers are read whole.

    Batches behind one that is damaged cannot be found: what their producers wrote there
    stays unknown, and the log is usable otherwise.

    Raises:
        OSError: the disk fails.
    """
    file = segment.file
    try:
        start = segment.position_of(offset) if offset > segment.base_offset else 0
        for position, header in iter_headers(file, start, segment.size):
            if header.has_producer_id:
                batch = header
                if header.is_control:
                    batch = read_batch(file, position, header.size_in_bytes)
                producers.stage_replicated(batch)
                producers.publish()
    except KafkaError as error:
        producers.drop()
        logger.warning("producers in %s are known in part: %s", segment.log_path, error)
