"""The entries of everything in a data folder that is no log of batches."""

from __future__ import annotations

import json
import os.path
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...runtime.rng import uuid_to_text
from ...storage.checkpoint.checkpoint_file import CheckpointError, read_epochs, read_offsets
from ...storage.checkpoint.meta_properties import read_meta_properties
from ...storage.checkpoint.partition_metadata import read_topic_id
from ...storage.errors import LogDirectoryError
from ...storage.file_names import (
    ABORTED_TRANSACTIONS_FILE,
    CLEAN_SHUTDOWN_FILE,
    EPOCHS_FILE,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
)
from ...storage.io.files import Files
from ...storage.producer_state.producer_snapshot import CorruptSnapshotError, decode_snapshot
from ..verify.data_folder import CHECKPOINT_FILES
from ..verify.finding import Finding, without_path
from ..verify.index_checks import IndexCheck, OffsetIndexCheck, TimeIndexCheck, iter_entries
from ..verify.side_file_checks import read_transactions
from ..verify.walk import walk_batches

Entries = Iterator[tuple[str, dict[str, Any]]]

SMALL_FILE_BYTES_MAX = 256 * 1024 * 1024
"""Files that are read whole are refused beyond this; a broker's are a thousandth of it."""


def dump_index(files: Files, path: str, *, verify: bool) -> Entries:
    """The entries of an offset index or a time index; verified, the log is read along."""
    stem, suffix = os.path.splitext(path)
    base_offset = int(os.path.basename(stem))
    check: type[IndexCheck] = OffsetIndexCheck if suffix == ".index" else TimeIndexCheck
    try:
        for first, second in iter_entries(files, path, check.ENTRY):
            if check is OffsetIndexCheck:
                yield "offset_index", {"offset": base_offset + first, "position": second}
            else:
                yield "time_index", {"timestamp": first, "offset": base_offset + second}
    except ValueError as error:
        yield _damage(f"the index is damaged: {error}")
        return
    if verify:
        for finding in _verify_index(files, stem + ".log", check(files, path, base_offset)):
            yield "damage", {"position": finding.position, "problem": finding.message}


def _verify_index(files: Files, log_path: str, check: IndexCheck) -> Iterator[Finding]:
    yield from check.start()
    file = files.open(log_path)
    is_empty = True
    damaged_end: int | None = None
    for stretch in walk_batches(file, file.size(), check.base_offset):
        if stretch.batch is None or stretch.problem is not None:
            damaged_end = stretch.end
            continue
        is_empty = False
        if damaged_end is not None:
            yield from check.skip(damaged_end, stretch.batch.base_offset)
            damaged_end = None
        yield from check.batch(stretch.position, stretch.batch)
    yield from check.finish(is_closed=False, is_empty=is_empty)


def dump_transactions(files: Files, path: str, *, verify: bool) -> Entries:
    """The aborted transactions of a transaction index."""
    _require_small(files, path)
    try:
        for entry in read_transactions(files, path):
            yield "transaction_index", entry._asdict()
    except ValueError as error:
        yield _damage(f"the index is damaged: {error}")


def dump_snapshot(files: Files, path: str, *, verify: bool) -> Entries:
    """The producers of a snapshot."""
    _require_small(files, path)
    try:
        states = decode_snapshot(files.read_bytes(path))
    except CorruptSnapshotError as error:
        yield _damage(f"the snapshot is damaged: it is {error}")
        return
    for producer_id, state in states.items():
        last = state.batches[-1] if state.batches else None
        yield (
            "producer",
            {
                "producer_id": producer_id,
                "producer_epoch": state.producer_epoch,
                "coordinator_epoch": state.coordinator_epoch,
                "current_txn_first_offset": state.current_txn_first_offset,
                "last_timestamp": state.last_timestamp,
                "first_sequence": last.first_sequence if last else -1,
                "last_sequence": last.last_sequence if last else -1,
                "last_offset": last.last_offset if last else -1,
                "offset_delta": last.offset_delta if last else 0,
            },
        )


def _dump_epochs(files: Files, path: str, *, verify: bool) -> Entries:
    _require_small(files, path)
    try:
        for epoch, offset in read_epochs(files, path):
            yield "leader_epoch", {"epoch": epoch, "start_offset": offset}
    except CheckpointError as error:
        yield _damage(without_path(str(error), path))


def _dump_checkpoint(files: Files, path: str, *, verify: bool) -> Entries:
    _require_small(files, path)
    try:
        for (topic, partition), offset in read_offsets(files, path).items():
            yield "checkpoint", {"topic": topic, "partition": partition, "offset": offset}
    except CheckpointError as error:
        yield _damage(without_path(str(error), path))


def _dump_meta_properties(files: Files, path: str, *, verify: bool) -> Entries:
    _require_small(files, path)
    try:
        found = read_meta_properties(files, os.path.dirname(path))
    except LogDirectoryError as error:
        yield _damage(without_path(str(error), path))
        return
    if found is not None:
        yield "meta_properties", found._asdict()


def _dump_partition_metadata(files: Files, path: str, *, verify: bool) -> Entries:
    _require_small(files, path)
    try:
        topic_id = read_topic_id(files, os.path.dirname(path))
    except (LogDirectoryError, ValueError) as error:
        yield _damage(without_path(str(error), path))
        return
    if topic_id is None:
        yield _damage("it tells no topic id")
        return
    yield "partition_metadata", {"topic_id": uuid_to_text(topic_id)}


def _dump_clean_shutdown(files: Files, path: str, *, verify: bool) -> Entries:
    _require_small(files, path)
    try:
        fields = json.loads(files.read_bytes(path))
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        yield _damage("it is no object in JSON")
        return
    yield (
        "clean_shutdown",
        {"version": fields.get("version"), "broker_epoch": fields.get("brokerEpoch")},
    )


def _require_small(files: Files, path: str) -> None:
    size = files.size(path)
    if size > SMALL_FILE_BYTES_MAX:
        raise ValueError(f"{path} has {size} bytes, which no broker writes into such a file")


def _damage(problem: str) -> tuple[str, dict[str, Any]]:
    return "damage", {"position": None, "problem": problem}


SIDE_FILES: Mapping[str, Callable[..., Entries]] = {
    EPOCHS_FILE: _dump_epochs,
    META_PROPERTIES_FILE: _dump_meta_properties,
    PARTITION_METADATA_FILE: _dump_partition_metadata,
    CLEAN_SHUTDOWN_FILE: _dump_clean_shutdown,
    **dict.fromkeys((*CHECKPOINT_FILES, ABORTED_TRANSACTIONS_FILE), _dump_checkpoint),
}
"""What dumps a file of this name."""
