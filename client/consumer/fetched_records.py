"""The records in what a partition was answered to a Fetch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...protocol.records import RecordBatch, iter_batches, iter_records
from ...protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ...protocol.records.validation import require_valid_crc

if TYPE_CHECKING:
    from ...protocol import messages

    AbortedTransaction = messages.FetchResponse.AbortedTransaction


class FetchedRecord(NamedTuple):
    """One record, and where it was."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch, -1 where the producer gave none."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class FetchedRecords(NamedTuple):
    """The records that were requested, and the offset to ask for next."""

    records: list[FetchedRecord]
    next_offset: int


def read_records(
    topic: str,
    partition: int,
    position: int,
    data: bytes | memoryview,
    aborted: Sequence[AbortedTransaction] = (),
) -> FetchedRecords:
    """Decode batches from a position on.

    Left out are records before it (batches are answered whole), the brokers' own markers, and
    those of transactions that were aborted.

    Args:
        topic: its name.
        partition: its index.
        position: the offset that was requested.
        data: batches; one cut off at the end is not there yet.
        aborted: the aborted transactions among them, if those are to be left out.

    Raises:
        KafkaError: CORRUPT_MESSAGE; MESSAGE_TOO_LARGE, if not one batch is whole.
    """
    records: list[FetchedRecord] = []
    next_offset = position
    is_aborted = _AbortedTransactions(aborted)
    batch = None
    for batch in iter_batches(data):
        require_valid_crc(batch)
        if not is_aborted(batch) and not batch.is_control:
            records += _of_batch(topic, partition, batch, position)
        next_offset = max(next_offset, batch.next_offset)
    if batch is None and len(data):
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch at offset {position} of partition {partition} of topic {topic!r} "
            f"is larger than the {len(data)} bytes that were requested",
        )
    return FetchedRecords(records, next_offset)


def _of_batch(
    topic: str, partition: int, batch: RecordBatch, position: int
) -> Iterator[FetchedRecord]:
    for record in iter_records(batch):
        if record.offset >= position:
            yield FetchedRecord(topic, partition, *record)


class _AbortedTransactions:
    """Whether a batch is part of an aborted transaction, called for batches in their order."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._open: set[int] = set()

    def __call__(self, batch: RecordBatch) -> bool:
        while self._to_come and self._to_come[-1].first_offset <= batch.last_offset:
            self._open.add(self._to_come.pop().producer_id)
        if batch.is_control:
            if self._is_abort(batch):
                self._open.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._open

    @staticmethod
    def _is_abort(batch: RecordBatch) -> bool:
        for record in iter_records(batch):
            marker = parse_end_transaction_marker(record)
            return marker is not None and marker.type == ControlRecordType.ABORT
        return False
