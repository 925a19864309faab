"""The producer states of a log, from its latest snapshot and the batches after it."""

from __future__ import annotations

from .files import Files
from .log_segment import LogSegment
from .log_segments import LogSegments
from .producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    list_snapshots,
    snapshot_path,
)
from .producer_state import ProducerState
from .producer_state_manager import ProducerStateManager
from .segment_reader import iter_headers, read_batch


def rebuild_producers(
    files: Files,
    directory: str,
    segments: LogSegments,
    producers: ProducerStateManager,
    *,
    log_start_offset: int,
    log_end_offset: int,
) -> None:
    """Replace what is known of the producers by what the disk says.

    Snapshots from after the end of the log are removed, and so are those that belong to
    no segment, except the latest: a clean shutdown leaves one at the end of the log.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a segment holds something that is no batch.
    """
    offset, states = _load_latest(files, directory, log_start_offset, log_end_offset)
    _remove_strays(files, directory, {segment.base_offset for segment in segments}, offset)
    producers.replace_all(states)
    if offset >= log_end_offset:
        return
    for segment in list(segments)[segments.floor_index(offset) :]:
        _replay(segment, producers, offset)


def _load_latest(
    files: Files, directory: str, log_start_offset: int, log_end_offset: int
) -> tuple[int, dict[int, ProducerState]]:
    for offset in reversed(list_snapshots(files, directory)):
        path = snapshot_path(directory, offset)
        if log_start_offset < offset <= log_end_offset:
            try:
                return offset, decode_snapshot(files.read_bytes(path))
            except CorruptSnapshotError:
                pass  # an older one and more of the log will do
        files.remove(path)
    return log_start_offset, {}


def _remove_strays(
    files: Files, directory: str, base_offsets: set[int], latest_offset: int
) -> None:
    for offset in list_snapshots(files, directory):
        if offset != latest_offset and offset not in base_offsets:
            files.remove(snapshot_path(directory, offset))


def _replay(segment: LogSegment, producers: ProducerStateManager, offset: int) -> None:
    """Take in a segment's batches from `offset` on; only markers are read whole."""
    file = segment.file
    start = segment.position_of(offset) if offset > segment.base_offset else 0
    for position, header in iter_headers(file, start, segment.size):
        if header.has_producer_id:
            batch = header
            if header.is_control:
                batch = read_batch(file, position, header.size_in_bytes)
            producers.stage_replicated(batch)
            producers.publish()
