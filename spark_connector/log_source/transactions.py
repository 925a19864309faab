"""Which transactions of a log were aborted, and from where on it is not known.

The transaction indexes tell of those before the latest snapshot of the producers; the batches
after it are looked at one by one.
"""

from __future__ import annotations

from typing import NamedTuple

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX
from ...protocol.records.batch import RecordBatch
from ...protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ...protocol.records.records import iter_records
from ...storage.errors import CorruptIndexError
from ...storage.file_names import TRANSACTION_INDEX_SUFFIX, snapshot_path
from ...storage.index.transaction_index import TransactionIndex
from ...storage.io.files import StorageFile
from ...storage.io.read_only_files import READ_ONLY_FILES
from ...storage.producer_state.producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    list_snapshots,
)
from ...storage.segment.segment_reader import iter_headers, read_batch
from ..errors import SparkConnectorError
from .folders import PartitionLog, Segment
from .slices import Aborted


class Transactions(NamedTuple):
    """What a reader of committed records has to know of a log."""

    aborted: tuple[Aborted, ...]
    last_stable_offset: int
    """Where the first transaction begins that has not ended; INT64_MAX if all have."""


def transactions_of(log: PartitionLog) -> Transactions:
    """Read the indexes, the snapshot and what came after it.

    Raises:
        SparkConnectorError: an index is damaged.
        OSError: the disk fails.
    """
    aborted = {}
    for segment in log.segments:
        index = TransactionIndex(
            READ_ONLY_FILES, segment.path[:-4] + TRANSACTION_INDEX_SUFFIX, segment.base_offset
        )
        try:
            index.sanity_check()
        except CorruptIndexError as error:
            raise SparkConnectorError(
                f"{error}; 'odradek log repair' makes it again, and option"
                " 'kafka.isolation.level' set to read_uncommitted needs none"
            ) from None
        for entry in index.read_all():
            aborted[entry.producer_id, entry.last_offset] = entry.first_offset
    known_to, opened = _latest_snapshot(log)
    for segment in log.segments:
        if segment.next_base_offset is None or segment.next_base_offset > known_to:
            _walk(segment, known_to, opened, aborted)
    return Transactions(
        tuple((producer, first, last) for (producer, last), first in sorted(aborted.items())),
        min(opened.values(), default=INT64_MAX),
    )


def _latest_snapshot(log: PartitionLog) -> tuple[int, dict[int, int]]:
    """Up to which offset the producers are known, and where their open transactions begin."""
    for offset in reversed(list_snapshots(READ_ONLY_FILES, log.path)):
        try:
            states = decode_snapshot(READ_ONLY_FILES.read_bytes(snapshot_path(log.path, offset)))
        except (CorruptSnapshotError, OSError):
            continue
        opened = {
            producer: state.current_txn_first_offset
            for producer, state in states.items()
            if state.current_txn_first_offset >= 0
        }
        return offset, opened
    return 0, {}


def _walk(
    segment: Segment, known_to: int, opened: dict[int, int], aborted: dict[tuple[int, int], int]
) -> None:
    file = READ_ONLY_FILES.open(segment.path)
    try:
        for position, batch in iter_headers(file, 0, segment.size):
            if batch.base_offset < known_to or not batch.is_transactional:
                continue
            if not batch.is_control:
                opened.setdefault(batch.producer_id, batch.base_offset)
                continue
            first = opened.pop(batch.producer_id, None)
            if first is not None and _is_abort(file, position, batch):
                aborted[batch.producer_id, batch.base_offset] = first
    except KafkaError:
        return  # damage here is reported by whoever reads it


def _is_abort(file: StorageFile, position: int, header: RecordBatch) -> bool:
    batch = read_batch(file, position, header.size_in_bytes)
    for record in iter_records(batch):
        marker = parse_end_transaction_marker(record)
        return marker is not None and marker.type is ControlRecordType.ABORT
    return False
