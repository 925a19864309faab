"""The batches that a share fetch has read, by their headers: records stay in their file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import error as StructError
from typing import NamedTuple

from ...common.errors import KafkaError
from ...protocol.records.batch import (
    BATCH_HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    RecordBatch,
    iter_batches,
)
from ...protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ...protocol.records.records import iter_records
from ...storage.errors import StorageError
from ...storage.index.transaction_index import AbortedTxn
from ...storage.io.file_slice import FileSlice
from .share_partition import FetchedBatch

HEADERS_READ_BYTES = 16 * 1024
"""How much of a file is read at a time where batches are small."""
LARGE_BATCH_BYTES = 2 * 1024
"""Behind a batch of such a size only the next header is read, not what is not looked at."""


class LocatedBatch(NamedTuple):
    """One batch and where it lies in what was read.

    Attributes:
        end: the position after it.
    """

    batch: FetchedBatch
    position: int
    end: int


def locate_batches(
    records: FileSlice | bytes, aborted: Sequence[AbortedTxn], records_max: int
) -> list[LocatedBatch]:
    """The whole batches of what was read, until so many records are together.

    Args:
        records: from the log.
        aborted: transactions whose records are not for readers of committed ones.
        records_max: one batch more is never needed.

    Raises:
        StorageError: the disk fails.
    """
    found: list[LocatedBatch] = []
    transactions = _AbortedTransactions(aborted)
    count = 0
    for position, header in _headers(records):
        end = position + LOG_OVERHEAD_BYTES + header.batch_length
        if end > len(records):
            break  # the read ended inside of it
        is_aborted = bool(aborted) and transactions.holds(header, records, position, end - position)
        batch = FetchedBatch(header.base_offset, header.last_offset, is_aborted)
        found.append(LocatedBatch(batch, position, end))
        count += header.last_offset_delta + 1
        if count >= records_max:
            break
    return found


def part_of(
    records: FileSlice | bytes, batches: Sequence[LocatedBatch], first: int, last: int
) -> FileSlice | bytes:
    """The batches that hold any offset from one to another."""
    within = [each for each in batches if each.batch.last_offset >= first and each.batch[0] <= last]
    if not within:
        return b""
    position, end = within[0].position, within[-1].end
    if isinstance(records, FileSlice):
        return FileSlice(records.file, records.position + position, end - position)
    return records[position:end]


def _headers(records: FileSlice | bytes) -> Iterator[tuple[int, RecordBatch]]:
    """Each batch's position, and a view of its header."""
    position, end = 0, len(records)
    window, window_at = b"", 0
    read_bytes = HEADERS_READ_BYTES
    while position + BATCH_HEADER_BYTES <= end:
        if position + BATCH_HEADER_BYTES > window_at + len(window):
            window_at = position
            window = _read(records, position, read_bytes)
        try:
            header = RecordBatch(window, position - window_at)
        except StructError:
            return
        if header.batch_length < BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES:
            return  # no batch is so short: the file is damaged
        yield position, header
        size = LOG_OVERHEAD_BYTES + header.batch_length
        read_bytes = HEADERS_READ_BYTES if size < LARGE_BATCH_BYTES else BATCH_HEADER_BYTES
        position += size


def _read(records: FileSlice | bytes, position: int, size: int) -> bytes:
    size = min(size, len(records) - position)
    if isinstance(records, FileSlice):
        return FileSlice(records.file, records.position + position, size).read()
    return bytes(records[position : position + size])


class _AbortedTransactions:
    """Which producers' records are of an aborted transaction, as the batches go by."""

    def __init__(self, aborted: Sequence[AbortedTxn]) -> None:
        self._waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._producers: set[int] = set()

    def holds(
        self, header: RecordBatch, records: FileSlice | bytes, position: int, size: int
    ) -> bool:
        """Whether the next batch is part of one."""
        while self._waiting and self._waiting[-1].first_offset <= header.last_offset:
            self._producers.add(self._waiting.pop().producer_id)
        if header.producer_id not in self._producers:
            return False
        if header.is_control:
            if _is_abort(_read(records, position, size)):
                self._producers.discard(header.producer_id)
            return False
        return header.is_transactional


def _is_abort(data: bytes) -> bool:
    try:
        record = next(iter_records(next(iter_batches(data))), None)
        marker = None if record is None else parse_end_transaction_marker(record)
    except (KafkaError, StorageError, StopIteration):
        return False
    return marker is not None and marker.type is ControlRecordType.ABORT
