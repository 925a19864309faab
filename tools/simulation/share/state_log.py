"""The log of `__share_group_state` as three brokers share it: one leader, the others copy it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ....common.errors import ErrorCode, KafkaError
from ....common.sentinels import NO_EPOCH, NO_PRODUCER_ID
from ....coordinator.log import (
    AppendCallback,
    AppendInTransaction,
    CoordinatorRecord,
    LoggedBatch,
    LoggedRecord,
)
from ....protocol.records.builder import EncodedRecords


class PendingStateAppend:
    """An append, and whom to tell; `batch` is None where it is in no log."""

    def __init__(
        self, view: StateLogView, batch: LoggedBatch | None, on_complete: AppendCallback
    ) -> None:
        self.view = view
        self.batch = batch
        self.on_complete = on_complete


class StateLog:
    """What the leader has, and how much of it is on the other replicas, too.

    Attributes:
        leader: broker id.
        leader_epoch: since which it leads.
    """

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.leader_epoch = 0
        self.appends: list[PendingStateAppend] = []
        self.replicated = 0

    def elect(self, leader: int, rng: random.Random) -> None:
        """Another leader, which has all that was replicated, and some or all of the rest."""
        kept = rng.randint(self.replicated, len(self.appends))
        del self.appends[kept:]
        self.replicated = kept
        self.leader = leader
        self.leader_epoch += 1

    @property
    def end_offset(self) -> int:
        """Behind the last record of the leader."""
        batch = self.appends[-1].batch if self.appends else None
        return batch.next_offset if batch else 0

    def replicate(self) -> PendingStateAppend | None:
        """The other replicas get one more batch: whom to tell; None where they had all."""
        if self.replicated == len(self.appends):
            return None
        self.replicated += 1
        return self.appends[self.replicated - 1]


class StateLogView:
    """The log as one broker's process sees it: a `CoordinatorLog`.

    Attributes:
        led_epoch: since which the broker believes to lead; -1: it does not.
    """

    def __init__(self, log: StateLog, broker_id: int) -> None:
        self.led_epoch = NO_EPOCH
        self._log = log
        self._broker_id = broker_id
        self._pending: list[PendingStateAppend] = []
        self._refused: list[AppendCallback] = []

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord] | EncodedRecords,
        on_complete: AppendCallback,
        transaction: AppendInTransaction | None = None,
    ) -> ErrorCode:
        """Append, or keep for ever what a leader appends that has been replaced."""
        assert not isinstance(records, EncodedRecords), "thousands of records are not simulated"
        if self.led_epoch == NO_EPOCH:
            self._refused.append(on_complete)
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        log = self._log
        batch = None
        if (log.leader, log.leader_epoch) == (self._broker_id, self.led_epoch):
            first = log.end_offset
            logged = [LoggedRecord(first + n, *each) for n, each in enumerate(records)]
            batch = LoggedBatch(first + len(logged), NO_PRODUCER_ID, None, logged)
        append = PendingStateAppend(self, batch, on_complete)
        self._pending.append(append)
        if batch is not None:
            log.appends.append(append)
        return ErrorCode.NONE

    def complete(self, append: PendingStateAppend) -> None:
        """An append is on all replicas."""
        if append in self._pending and append.batch is not None:
            self._pending.remove(append)
            append.on_complete(ErrorCode.NONE, append.batch.next_offset - 1)

    def begin_leading(self, leader_epoch: int) -> None:
        """The broker hears that it leads."""
        self.led_epoch = leader_epoch

    def stop_leading(self) -> None:
        """The broker hears that another one leads: what is pending has failed for it."""
        self.led_epoch = NO_EPOCH
        pending, self._pending = self._pending, []
        for each in pending:
            each.on_complete(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    def flush(self) -> None:
        """Tell of what was refused."""
        refused, self._refused = self._refused, []
        for on_complete in refused:
            on_complete(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    def start_offset(self, partition: int) -> int:
        """Nothing is removed."""
        return 0

    def end_offset(self, partition: int) -> int:
        """The offset after the last record."""
        return self._log.end_offset

    def high_watermark(self, partition: int) -> int:
        """The offset before which all replicas have everything. Raises KafkaError."""
        self._check_led()
        replicated = self._log.appends[: self._log.replicated]
        return replicated[-1].batch.next_offset if replicated and replicated[-1].batch else 0

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[LoggedBatch]:
        """One batch at a time. Raises KafkaError."""
        self._check_led()
        batches = (each.batch for each in self._log.appends)
        found = next((each for each in batches if each and each.next_offset > offset), None)
        return [] if found is None else [found]

    def _check_led(self) -> None:
        if self.led_epoch == NO_EPOCH:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
