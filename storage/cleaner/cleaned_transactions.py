"""Which transactional batches and markers may go (Kafka's CleanedTransactionMetadata).

Batches of aborted transactions go at once. A marker goes only when nothing of its
transaction is left, and then after a delay, like a tombstone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ...protocol.records.batch import RecordBatch
from ...protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ...protocol.records.records import iter_records
from ..index.transaction_index import AbortedTxn, TransactionIndex


class _OngoingAborted:
    """An aborted transaction whose marker has not been met yet."""

    __slots__ = ("aborted", "has_batches")

    def __init__(self, aborted: AbortedTxn) -> None:
        self.aborted = aborted
        self.has_batches = False


class CleanedTransactions:
    """What is known of transactions while segments are read in order.

    Attributes:
        cleaned_index: gets the entries that the cleaned segment needs, if there is one.
    """

    def __init__(self) -> None:
        self.cleaned_index: TransactionIndex | None = None
        self._committed: set[int] = set()
        self._aborted: dict[int, _OngoingAborted] = {}
        self._to_come: list[tuple[int, AbortedTxn]] = []

    def add(self, aborted: Iterable[AbortedTxn]) -> None:
        """Make aborted transactions known, before their first batch is read."""
        for each in aborted:
            heapq.heappush(self._to_come, (each.first_offset, each))

    def read_batch(self, batch: RecordBatch) -> bool:
        """Take in a data batch; whether it is of an aborted transaction and so may go."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        ongoing = self._aborted.get(batch.producer_id)
        if ongoing is None:
            self._committed.add(batch.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def read_control_batch(self, batch: RecordBatch) -> bool:
        """Take in a control batch, whole; whether nothing of its transaction is left.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD, it cannot be decoded.
        """
        self._begin_up_to(batch.last_offset)
        record = next(iter_records(batch), None)
        if record is None:
            return True
        marker = parse_end_transaction_marker(record)
        if marker is None:
            return False
        producer_id = batch.producer_id
        if marker.type is ControlRecordType.COMMIT:
            if producer_id in self._committed:
                self._committed.remove(producer_id)
                return False
            return True
        ongoing = self._aborted.pop(producer_id, None)
        if ongoing is None or not ongoing.has_batches:
            return True
        if self.cleaned_index is not None:
            self.cleaned_index.append(ongoing.aborted)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[0][0] <= offset:
            aborted = heapq.heappop(self._to_come)[1]
            self._aborted.setdefault(aborted.producer_id, _OngoingAborted(aborted))
