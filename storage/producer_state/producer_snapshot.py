"""Producer states in a file, so that a restart need not read the log for them.

Kafka's `<offset>.snapshot`: version, CRC-32C of what follows it, entries. The offset in
the name is the first one the snapshot does not know.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from struct import Struct

from ...protocol.records.crc import crc32c
from ..io.files import Files
from .producer_state import BatchMetadata, ProducerState

SUFFIX = ".snapshot"
VERSION = 1
HEADER = Struct(">hI")
COUNT = Struct(">i")
ENTRY = Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator
epoch, first offset of the open transaction."""


class CorruptSnapshotError(Exception):
    """A snapshot that cannot be used; it is removed, and the log read instead."""


def snapshot_path(directory: str, offset: int) -> str:
    """The path of the snapshot at `offset`."""
    return os.path.join(directory, f"{offset:020d}{SUFFIX}")


def list_snapshots(files: Files, directory: str) -> list[int]:
    """The offsets of a folder's snapshots, rising."""
    return [
        int(name[: -len(SUFFIX)])
        for name in files.list_directory(directory)
        if name.endswith(SUFFIX) and name[: -len(SUFFIX)].isdigit()
    ]


def encode_snapshot(states: Mapping[int, ProducerState]) -> bytes:
    """The states in file form."""
    body = bytearray(COUNT.pack(len(states)))
    for producer_id, state in states.items():
        last = state.batches[-1] if state.batches else None
        body += ENTRY.pack(
            producer_id,
            state.producer_epoch,
            last.last_sequence if last else -1,
            last.last_offset if last else -1,
            last.offset_delta if last else 0,
            state.last_timestamp,
            state.coordinator_epoch,
            state.current_txn_first_offset,
        )
    return HEADER.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> dict[int, ProducerState]:
    """The states in a snapshot; of each producer only the last batch is kept in it.

    Raises:
        CorruptSnapshotError: another version, a wrong checksum, or a wrong size.
    """
    if len(data) < HEADER.size + COUNT.size:
        raise CorruptSnapshotError(f"a snapshot of {len(data)} bytes")
    version, checksum = HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshotError(f"a snapshot of version {version}")
    if crc32c(memoryview(data)[HEADER.size :]) != checksum:
        raise CorruptSnapshotError("a snapshot that fails its checksum")
    (count,) = COUNT.unpack_from(data, HEADER.size)
    entries = memoryview(data)[HEADER.size + COUNT.size :]
    if count * ENTRY.size != len(entries):
        raise CorruptSnapshotError(f"a snapshot of {count} entries in {len(entries)} bytes")
    return dict(_decode_entry(fields) for fields in ENTRY.iter_unpack(entries))


def _decode_entry(fields: tuple[int, ...]) -> tuple[int, ProducerState]:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first = fields
    batches = (BatchMetadata(sequence, offset, delta, timestamp),) if offset >= 0 else ()
    return producer_id, ProducerState(epoch, batches, timestamp, coordinator_epoch, txn_first)
