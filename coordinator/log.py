"""The log that a coordinator keeps its state in, as it sees it: append, flush, read.

`replicated_log.py` is the real one, on the partitions of `__consumer_offsets` or of
`__transaction_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from ..common.errors import ErrorCode
from ..protocol.records.builder import EncodedRecords
from ..storage.producer_state.verification_guard import VerificationGuard

AppendCallback = Callable[[ErrorCode, int], None]
"""Called once with the outcome and the offset of the first record (-1 after an error)."""


class CoordinatorRecord(NamedTuple):
    """One record to append; a value of None deletes what the key names."""

    key: bytes
    value: bytes | None


class AppendInTransaction(NamedTuple):
    """Whose transaction an append is part of; `guard` is what it was verified with (KIP-890)."""

    producer_id: int
    producer_epoch: int
    guard: VerificationGuard | None


class LoggedRecord(NamedTuple):
    """One record as read back."""

    offset: int
    key: bytes | None
    value: bytes | None


class LoggedBatch(NamedTuple):
    """One batch as read back.

    Attributes:
        next_offset: the offset after the batch.
        producer_id: whose transaction the batch is part of, -1 if of none.
        committed: of a batch that ends a transaction, whether it was committed; else None.
        records: to be read once.
    """

    next_offset: int
    producer_id: int
    committed: bool | None
    records: Iterable[LoggedRecord]


class CoordinatorLog(Protocol):
    """The partitions of a coordinators' topic that this broker leads."""

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord] | EncodedRecords,
        on_complete: AppendCallback,
        transaction: AppendInTransaction | None = None,
    ) -> ErrorCode:
        """Append records as one batch, all or none; they may be part of a transaction.

        Thousands are encoded before, in steps.

        `on_complete` is called when they are on enough replicas or cannot be, never inside
        this call.

        Returns:
            why they were refused, if that is certain already; `on_complete` gets it as well.
        """

    def flush(self) -> None:
        """Write what was appended outside of a request's pass, and complete it."""

    def start_offset(self, partition: int) -> int:
        """The offset of the first record still there."""

    def end_offset(self, partition: int) -> int:
        """The offset after the last record."""

    def high_watermark(self, partition: int) -> int:
        """The offset before which all in-sync replicas have everything.

        Raises:
            KafkaError: this broker does not lead the partition.
        """

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[LoggedBatch]:
        """Whole batches from `offset` on, at least one unless the log ends there.

        Args:
            max_bytes: how much to read, unless the first batch alone is longer.

        Raises:
            KafkaError: this broker does not lead the partition.
        """
