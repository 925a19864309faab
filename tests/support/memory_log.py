"""A coordinator's log in memory."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import NO_PRODUCER_ID
from odradek.coordinator.log import (
    AppendCallback,
    AppendInTransaction,
    CoordinatorRecord,
    LoggedBatch,
    LoggedRecord,
)
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import EncodedRecords, build_batch
from odradek.protocol.records.records import iter_records

PARTITIONS = 4


class MemoryLog:
    """`CoordinatorLog` in memory: appends wait for `flush`, or for `release` while held.

    Attributes:
        fail_with: the error of every append, until set to NONE again.
        is_held: appends are in the log, but not on enough replicas yet.
        replicated_up_to: the high watermark, where replicas lag behind.
    """

    def __init__(self) -> None:
        self.fail_with = ErrorCode.NONE
        self.is_held = False
        self.replicated_up_to: int | None = None
        self.led = set(range(PARTITIONS))
        self.batches: dict[int, list[LoggedBatch]] = {}
        self._waiting: list[tuple[AppendCallback, ErrorCode, int]] = []

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord] | EncodedRecords,
        on_complete: AppendCallback,
        transaction: AppendInTransaction | None = None,
    ) -> ErrorCode:
        if isinstance(records, EncodedRecords):
            batch = RecordBatch(memoryview(build_batch(records)))
            records = [
                CoordinatorRecord(each.key or b"", each.value) for each in iter_records(batch)
            ]
        error = self.fail_with
        if partition not in self.led:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        base_offset = -1
        if not error:
            base_offset = self.end_offset(partition)
            producer_id = NO_PRODUCER_ID if transaction is None else transaction.producer_id
            self.put(partition, [(record.key, record.value) for record in records], producer_id)
        self._waiting.append((on_complete, error, base_offset))
        return error

    def put(
        self,
        partition: int,
        records: Sequence[tuple[bytes | None, bytes | None]],
        producer_id: int = NO_PRODUCER_ID,
        committed: bool | None = None,
    ) -> None:
        """Put a batch into the log, as another broker or a transaction may have."""
        offset = self.end_offset(partition)
        logged = [LoggedRecord(offset + n, key, value) for n, (key, value) in enumerate(records)]
        batch = LoggedBatch(offset + max(len(logged), 1), producer_id, committed, logged)
        self.batches.setdefault(partition, []).append(batch)

    def flush(self) -> None:
        if not self.is_held:
            self.release()

    def release(self) -> None:
        """Let all appends reach the replicas, and complete them in order."""
        while self._waiting:
            on_complete, error, base_offset = self._waiting.pop(0)
            on_complete(error, base_offset)

    def take_waiting(self) -> list[tuple[AppendCallback, ErrorCode, int]]:
        """The appends that wait, for a test to complete in a way of its own."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def forget_waiting(self) -> None:
        """The broker died: nobody is there to be told of its appends."""
        self._waiting.clear()

    def start_offset(self, partition: int) -> int:
        return 0

    def end_offset(self, partition: int) -> int:
        batches = self.batches.get(partition)
        return batches[-1].next_offset if batches else 0

    def high_watermark(self, partition: int) -> int:
        if partition not in self.led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        end = self.end_offset(partition)
        return end if self.replicated_up_to is None else min(end, self.replicated_up_to)

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[LoggedBatch]:
        if partition not in self.led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        found: list[LoggedBatch] = []
        size = 0
        for batch in self.batches.get(partition, []):
            if batch.next_offset > offset and (not found or size < max_bytes):
                found.append(batch)
                size += sum(len(r.key or b"") + len(r.value or b"") for r in batch.records)
        return found

    def values(self, partition: int) -> list[tuple[bytes | None, bytes | None]]:
        """Key and value of every record."""
        return [(r.key, r.value) for b in self.batches.get(partition, []) for r in b.records]
