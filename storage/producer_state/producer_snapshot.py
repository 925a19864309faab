"""Producer states in a file, so that a restart need not read the log for them.

Kafka's `<offset>.snapshot`: version, CRC-32C of what follows it, entries. The offset in
the name is the first one the snapshot does not know.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from ...protocol.records.crc import crc32c
from ..file_names import SNAPSHOT_SUFFIX, snapshot_path
from ..io.files import Files
from .producer_state import BatchMetadata, ProducerState
from .producer_state_manager import ProducerStateManager

logger = logging.getLogger(__name__)

PRODUCER_SNAPSHOT_VERSION = 1
HEADER = Struct(">hI")
COUNT = Struct(">i")
PRODUCER_ENTRY = Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator
epoch, first offset of the open transaction."""


class CorruptSnapshotError(Exception):
    """A snapshot that cannot be used; it is removed, and the log read instead."""


def list_snapshots(files: Files, directory: str) -> list[int]:
    """The offsets of a folder's snapshots, rising."""
    return [
        int(name[: -len(SNAPSHOT_SUFFIX)])
        for name in files.list_directory(directory)
        if name.endswith(SNAPSHOT_SUFFIX) and name[: -len(SNAPSHOT_SUFFIX)].isdigit()
    ]


def encode_snapshot(states: Mapping[int, ProducerState]) -> bytes:
    """The states in file form."""
    body = bytearray(COUNT.pack(len(states)))
    for producer_id, state in states.items():
        last = state.batches[-1] if state.batches else None
        body += PRODUCER_ENTRY.pack(
            producer_id,
            state.producer_epoch,
            last.last_sequence if last else -1,
            last.last_offset if last else -1,
            last.offset_delta if last else 0,
            state.last_timestamp,
            state.coordinator_epoch,
            state.current_txn_first_offset,
        )
    return HEADER.pack(PRODUCER_SNAPSHOT_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> dict[int, ProducerState]:
    """The states in a snapshot; of each producer only the last batch is kept in it.

    Raises:
        CorruptSnapshotError: another version, a wrong checksum, or a wrong size.
    """
    if len(data) < HEADER.size + COUNT.size:
        raise CorruptSnapshotError(f"a snapshot of {len(data)} bytes")
    version, checksum = HEADER.unpack_from(data)
    if version != PRODUCER_SNAPSHOT_VERSION:
        raise CorruptSnapshotError(f"a snapshot of version {version}")
    if crc32c(memoryview(data)[HEADER.size :]) != checksum:
        raise CorruptSnapshotError("a snapshot that fails its checksum")
    (count,) = COUNT.unpack_from(data, HEADER.size)
    entries = memoryview(data)[HEADER.size + COUNT.size :]
    if count * PRODUCER_ENTRY.size != len(entries):
        raise CorruptSnapshotError(f"a snapshot of {count} entries in {len(entries)} bytes")
    return dict(_decode_entry(fields) for fields in PRODUCER_ENTRY.iter_unpack(entries))


def _decode_entry(fields: tuple[int, ...]) -> tuple[int, ProducerState]:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first = fields
    batches = (BatchMetadata(sequence, offset, delta, timestamp),) if offset >= 0 else ()
    return producer_id, ProducerState(epoch, batches, timestamp, coordinator_epoch, txn_first)


def take_snapshot(
    files: Files, directory: str, producers: ProducerStateManager, offset: int
) -> None:
    """Write the published states, unless the latest snapshot is as new.

    Args:
        directory: the partition's folder.
        producers: have taken in all batches before `offset` and none after.
        offset: where the log or the full segment ends.
    """
    if offset > producers.snapshot_offset:
        files.write_atomically(
            snapshot_path(directory, offset), encode_snapshot(producers.published)
        )
        producers.snapshot_offset = offset


def load_latest_snapshot(
    files: Files,
    directory: str,
    snapshots: Sequence[int],
    log_start_offset: int,
    log_end_offset: int,
) -> tuple[int, dict[int, ProducerState]]:
    """The offset and the states of the latest usable snapshot of a range.

    One that is damaged is removed. The log's start and no states if there is none. Unlike Kafka's,
    one at the log's start counts: where all records have expired it is all that is left to tell a
    batch that is sent again.

    Args:
        snapshots: the offsets of all that the folder has, rising.
    """
    for offset in reversed(snapshots):
        if log_start_offset <= offset <= log_end_offset:
            path = snapshot_path(directory, offset)
            try:
                return offset, decode_snapshot(files.read_bytes(path))
            except CorruptSnapshotError as error:
                logger.warning(
                    "producer snapshot %s is corrupt, reading the log instead: %s", path, error
                )
                files.remove(path)
    return log_start_offset, {}


def remove_stray_snapshots(
    files: Files,
    directory: str,
    base_offsets: Iterable[int],
    log_start_offset: int,
    log_end_offset: int,
) -> list[int]:
    """Remove the snapshots that no later start can use.

    Those from after the end of the log or from before its start, and those that belong to no
    segment, except the latest: a clean shutdown leaves one at the end of the log.

    Returns:
        The offsets of those that are left, rising.
    """
    offsets = list_snapshots(files, directory)
    in_range = [offset for offset in offsets if log_start_offset <= offset <= log_end_offset]
    kept = set(base_offsets).intersection(in_range)
    kept.update(in_range[-1:])
    for offset in offsets:
        if offset not in kept:
            files.remove(snapshot_path(directory, offset))
    return sorted(kept)
