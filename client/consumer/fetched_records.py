"""The records in what a partition was answered to a Fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...protocol.records import RecordBatch, iter_batches, iter_records
from ...protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ...protocol.records.records import read_values
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


class FetchedBatch(NamedTuple):
    """A batch of a partition, decoded when somebody asks for its records.

    Attributes:
        topic: its name.
        partition: its index.
        first_offset: records before it are not handed out; batches are answered whole.
        batch: as the broker has it.
        is_hidden: whether it is a marker of the brokers, or part of an aborted transaction.
    """

    topic: str
    partition: int
    first_offset: int
    batch: RecordBatch
    is_hidden: bool = False

    @property
    def next_offset(self) -> int:
        """The offset behind it."""
        return max(self.first_offset, self.batch.next_offset)

    def records(self) -> list[FetchedRecord]:
        """The records.

        Raises:
            KafkaError: CORRUPT_MESSAGE.
        """
        if self.is_hidden:
            return []
        topic, partition, first_offset = self.topic, self.partition, self.first_offset
        return [
            FetchedRecord(topic, partition, *record)
            for record in iter_records(self.batch)
            if record.offset >= first_offset
        ]

    def values(self) -> list[bytes | None]:
        """The values of the records, and nothing else: a quarter of the cost.

        Raises:
            KafkaError: CORRUPT_MESSAGE.
        """
        return [] if self.is_hidden else read_values(self.batch, self.first_offset)


def whole_batches(
    topic: str, partition: int, position: int, data: bytes | memoryview
) -> list[RecordBatch]:
    """The batches of an answer; one cut off at its end is not there yet.

    Args:
        topic: its name.
        partition: its index.
        position: the offset that was requested.
        data: batches.

    Raises:
        KafkaError: CORRUPT_MESSAGE; MESSAGE_TOO_LARGE, if not one batch is whole.
    """
    batches = list(iter_batches(data))
    if not batches and len(data):
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch at offset {position} of partition {partition} of topic {topic!r} "
            f"is larger than the {len(data)} bytes that were requested",
        )
    return batches


def iter_fetched(
    topic: str,
    partition: int,
    position: int,
    batches: Iterable[RecordBatch],
    aborted: Sequence[AbortedTransaction] = (),
) -> Iterator[FetchedBatch]:
    """Batches as a consumer sees them, from a position on; their records are not decoded yet.

    Args:
        topic: its name.
        partition: its index.
        position: the offset that was requested.
        batches: as they were answered.
        aborted: the aborted transactions among them, if those are to be left out.

    Raises:
        KafkaError: CORRUPT_MESSAGE, one fails its checksum.
    """
    is_aborted = _AbortedTransactions(aborted)
    for batch in batches:
        require_valid_crc(batch)
        is_hidden = is_aborted(batch) or batch.is_control
        yield FetchedBatch(topic, partition, position, batch, is_hidden)


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
    batches = whole_batches(topic, partition, position, data)
    for fetched in iter_fetched(topic, partition, position, batches, aborted):
        records += fetched.records()
        next_offset = max(next_offset, fetched.next_offset)
    return FetchedRecords(records, next_offset)


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
