"""Records of a partition, read without a client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .broker_state import records

if TYPE_CHECKING:
    from ...protocol.records.batch import RecordBatch
    from ..control.client import ControlClient

SHOWN_BYTES = 80
"""How much a record shows of its key and its value."""


class ConsumerRecord(NamedTuple):
    """A record, as a consumer would see it.

    Attributes:
        timestamp: in milliseconds since the epoch, -1 where there is none.
        headers: names and values, in their order.
        producer_id: of the producer that wrote it, -1 for one that is not idempotent.
        is_transactional: whether it was written in a transaction.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    producer_id: int = -1
    is_transactional: bool = False

    def __repr__(self) -> str:
        headers = "".join(f", header {name}={_shown(value)}" for name, value in self.headers)
        end = ", transactional" if self.is_transactional else ""
        return (
            f"<record at offset {self.offset} of {self.topic}-{self.partition}: key="
            f"{_shown(self.key)}, value={_shown(self.value)}{headers}{end}>"
        )


def read_partition(
    control: ControlClient,
    topic: str,
    partition: int,
    *,
    offset: int = 0,
    committed_only: bool = False,
) -> Iterator[ConsumerRecord]:
    """The records of a partition that a broker has, up to what consumers could read now.

    Args:
        control: of the broker; one that leads the partition has all.
        offset: where to begin.
        committed_only: leave out what was aborted, and all from the first open transaction on.

    Raises:
        ControlError: the broker has no replica of it.
    """
    from ...protocol.records.batch import iter_batches

    while True:
        page = records.on(control)(topic, partition, offset, committed_only)
        skipped = _Aborted(page.aborted)
        begin = offset = max(offset, page.start)
        for batch in iter_batches(page.batches):
            if not batch.is_control and not skipped.has(batch):
                yield from _records(batch, topic, partition, offset)
            skipped.pass_over(batch)
            begin = batch.next_offset
        if begin <= offset or begin >= page.end:
            return
        offset = begin


def _shown(value: bytes | None) -> str:
    """Bytes as Python has them; of long ones the beginning."""
    if value is None or len(value) <= SHOWN_BYTES:
        return repr(value)
    return f"{value[:SHOWN_BYTES]!r}... ({len(value):,} bytes)"


class _Aborted:
    """Which producers' records are aborted, while one goes through a partition."""

    def __init__(self, aborted: list[tuple[int, int]]) -> None:
        self._starts: dict[int, list[int]] = defaultdict(list)
        for producer_id, first_offset in aborted:
            self._starts[producer_id].append(first_offset)
        for starts in self._starts.values():
            starts.sort(reverse=True)

    def has(self, batch: RecordBatch) -> bool:
        """Whether a batch is part of an aborted transaction."""
        starts = self._starts.get(batch.producer_id)
        if not starts or not batch.is_transactional:
            return False
        return starts[-1] <= batch.base_offset

    def pass_over(self, batch: RecordBatch) -> None:
        """A marker that aborts ends the transaction that began first."""
        if batch.is_control:
            starts = self._starts.get(batch.producer_id)
            if starts and starts[-1] <= batch.base_offset:
                starts.pop()


def _records(
    batch: RecordBatch, topic: str, partition: int, from_offset: int
) -> Iterator[ConsumerRecord]:
    from ...protocol.records.records import iter_records

    for record in iter_records(batch):
        if record.offset >= from_offset:
            yield ConsumerRecord(
                topic,
                partition,
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                tuple(record.headers),
                batch.producer_id,
                batch.is_transactional,
            )
