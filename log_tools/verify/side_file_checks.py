"""Comparing a partition's side files with its batches: transactions, snapshots, epochs."""

from __future__ import annotations

import os.path
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from struct import error as StructError

from ...common.sentinels import NO_EPOCH
from ...protocol.records.batch import RecordBatch
from ...storage.checkpoint.checkpoint_file import CheckpointError, read_epochs
from ...storage.file_names import EPOCHS_FILE, snapshot_path
from ...storage.index.transaction_index import ABORTED_TRANSACTION as TRANSACTION_ENTRY
from ...storage.index.transaction_index import TRANSACTION_INDEX_VERSION as TRANSACTION_VERSION
from ...storage.index.transaction_index import AbortedTxn
from ...storage.io.files import Files
from ...storage.producer_state.producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    list_snapshots,
)
from ...storage.producer_state.producer_state import ProducerState
from .finding import Finding, FindingKind, without_path
from .replay import ProducerStateReplay

DIFFERENT_PRODUCERS_MAX = 5
"""Of one snapshot: after so many, the rest is not reported."""


def read_transactions(files: Files, path: str) -> list[AbortedTxn]:
    """The entries of a `.txnindex` file; none if it is not there.

    Raises:
        ValueError: it ends inside an entry, or an entry is impossible; the text says so.
    """
    if not files.exists(path):
        return []
    data = files.read_bytes(path)
    if len(data) % TRANSACTION_ENTRY.size:
        raise ValueError(f"it ends inside an entry of {TRANSACTION_ENTRY.size} bytes")
    entries: list[AbortedTxn] = []
    for slot, (version, *fields) in enumerate(TRANSACTION_ENTRY.iter_unpack(data)):
        entry = AbortedTxn(*fields)
        if version != TRANSACTION_VERSION:
            raise ValueError(f"entry {slot} has version {version}")
        if not (entry.producer_id >= 0 and 0 <= entry.first_offset < entry.last_offset):
            raise ValueError(f"entry {slot} is impossible: {_describe(entry)}")
        if entries and entry.last_offset <= entries[-1].last_offset:
            raise ValueError(f"entry {slot} does not end after the one before it")
        entries.append(entry)
    return entries


class TransactionIndexCheck:
    """A segment's transaction index against the transactions that its markers abort.

    Compaction takes aborted records away before their marker, and a log may begin inside a
    transaction: then an entry may know more than the batches do, but never less.

    Args:
        path: the index's file, which need not be there.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self._entries: dict[int, AbortedTxn] = {}
        self._is_readable = True

    def start(self) -> Iterator[Finding]:
        """Read the entries."""
        try:
            entries = read_transactions(self._files, self.path)
        except ValueError as error:
            self._is_readable = False
            yield self._finding(f"the index is damaged: {error}")
            return
        self._entries = {entry.last_offset: entry for entry in entries}

    def aborted(
        self, expected: AbortedTxn, replay: ProducerStateReplay, *, may_miss: bool
    ) -> Iterator[Finding]:
        """A marker has aborted a transaction, which the index must know unless it `may_miss` it."""
        if not self._is_readable:
            return
        found = self._entries.pop(expected.last_offset, None)
        if found == expected:
            return
        if found is None and may_miss:
            return
        if found is None:
            yield self._finding(
                f"the aborted transaction {_describe(expected)} is missing: readers of committed "
                "records would be given its records",
                expected.last_offset,
            )
        elif not _may_know_more(found, expected, replay):
            yield self._finding(
                f"the aborted transaction {_describe(expected)} is noted as {_describe(found)}",
                expected.last_offset,
            )

    def finish(
        self, base_offset: int, next_offset: int, replay: ProducerStateReplay
    ) -> Iterator[Finding]:
        """The segment has ended: what is left names no transaction that was seen."""
        for entry in self._entries.values():
            if not base_offset <= entry.last_offset < next_offset:
                yield self._finding(f"{_describe(entry)} does not end in the segment")
            elif replay.is_complete and not replay.has_gaps:
                yield self._finding(
                    f"no marker aborts the transaction {_describe(entry)}: readers of committed "
                    "records would miss its records",
                    entry.last_offset,
                )

    def _finding(self, message: str, offset: int | None = None) -> Finding:
        return Finding(FindingKind.TRANSACTION_INDEX, self.path, message, offset)


def _may_know_more(found: AbortedTxn, expected: AbortedTxn, replay: ProducerStateReplay) -> bool:
    return (
        found.producer_id == expected.producer_id
        and (replay.has_gaps or not replay.is_complete)
        and found.first_offset <= expected.first_offset
        and found.last_stable_offset <= expected.last_stable_offset
    )


def _describe(entry: AbortedTxn) -> str:
    return (
        f"of producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}, "
        f"last stable offset {entry.last_stable_offset}"
    )


class SnapshotCheck:
    """A partition's snapshots against the producers' states where each was taken.

    Args:
        directory: the partition's folder.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._waiting = list_snapshots(files, directory)

    def states_at(self, offset: int) -> dict[int, ProducerState] | None:
        """The snapshot taken at an offset, if it is there and whole."""
        try:
            return self._read(offset) if offset in self._waiting else None
        except CorruptSnapshotError:
            return None

    def before(self, offset: int, replay: ProducerStateReplay) -> Iterator[Finding]:
        """Look at the snapshots taken up to `offset`; the replay stands right before it."""
        while self._waiting and self._waiting[0] <= offset:
            yield from self._compare(self._waiting.pop(0), replay)

    def finish(self, replay: ProducerStateReplay, *, may_be_behind: bool) -> Iterator[Finding]:
        """The log has ended; a snapshot from behind its end is of what is lost.

        Args:
            replay: at the end.
            may_be_behind: whether the log may have grown since its end was looked at.
        """
        yield from self.before(replay.offset, replay)
        for offset in () if may_be_behind else self._waiting:
            yield self._finding(
                offset, f"the snapshot is of offset {offset}, but the log ends at {replay.offset}"
            )

    def _compare(self, offset: int, replay: ProducerStateReplay) -> Iterator[Finding]:
        try:
            states = self._read(offset)
        except CorruptSnapshotError as error:
            yield self._finding(offset, f"the snapshot is damaged: it is {error}")
            return
        if offset < replay.offset:
            return  # of a time before the log begins
        if replay.has_gaps or not replay.is_complete:
            # it knows of batches that compaction has taken away, or that are damaged
            replay.begin_again(states)
            return
        reported = 0
        for producer_id, state in states.items():
            known = replay.states.get(producer_id)
            expected = None if known is None else _as_in_a_snapshot(known)
            if state == expected:
                continue
            reported += 1
            if reported > DIFFERENT_PRODUCERS_MAX:
                return
            yield self._finding(
                offset,
                f"producer {producer_id} is noted as {_describe_state(state)}, but the batches "
                f"say {_describe_state(expected)}",
            )

    def _read(self, offset: int) -> dict[int, ProducerState]:
        try:
            data = self._files.read_bytes(snapshot_path(self._directory, offset))
            return decode_snapshot(data)
        except StructError as error:
            raise CorruptSnapshotError(f"a snapshot that cannot be decoded: {error}") from error

    def _finding(self, offset: int, message: str) -> Finding:
        path = snapshot_path(self._directory, offset)
        return Finding(FindingKind.SNAPSHOT, path, message, offset)


def _as_in_a_snapshot(state: ProducerState) -> ProducerState:
    """Of the batches, a snapshot keeps only the last, and one timestamp for both."""
    last = tuple(each._replace(timestamp=state.last_timestamp) for each in state.batches[-1:])
    return state._replace(batches=last)


def _describe_state(state: ProducerState | None) -> str:
    if state is None:
        return "nothing of it"
    last = state.batches[-1].last_offset if state.batches else -1
    return (
        f"epoch {state.producer_epoch}, sequence {state.last_sequence} at offset {last}, "
        f"timestamp {state.last_timestamp}, coordinator epoch {state.coordinator_epoch}, "
        f"transaction from {state.current_txn_first_offset}"
    )


class EpochCheck:
    """`leader-epoch-checkpoint` against the epochs of the batches.

    Args:
        directory: the partition's folder.
        may_be_behind: whether the latest epochs may be missing: a running broker writes them to
            the file only when it flushes the log.
    """

    def __init__(self, files: Files, directory: str, *, may_be_behind: bool = False) -> None:
        self._files = files
        self._may_be_behind = may_be_behind
        self.path = os.path.join(directory, EPOCHS_FILE)
        self._epochs: list[int] = []
        self._offsets: list[int] = []
        self._last_offset = -1
        self._latest = -1
        """Of the batches so far."""
        self._suspect: Finding | None = None
        """That a batch does not agree with the file, until the next one shows which is wrong."""
        self._is_usable = False

    def start(self) -> Iterator[Finding]:
        """Read the file."""
        try:
            entries = read_epochs(self._files, self.path)
        except CheckpointError as error:
            yield self._finding(f"the file is damaged: {without_path(str(error), self.path)}")
            return
        for before, after in pairwise(entries):
            if after[0] <= before[0] or after[1] <= before[1]:
                yield self._finding(
                    f"epoch {after[0]} from {after[1]} does not follow epoch {before[0]} "
                    f"from {before[1]}"
                )
                return
        self._epochs = [epoch for epoch, _ in entries]
        self._offsets = [offset for _, offset in entries]
        self._is_usable = True

    def batch(
        self, batch: RecordBatch, path: str, position: int, log_start_offset: int
    ) -> Iterator[Finding]:
        """The epoch in a batch must be the one that the file has for its offset.

        Epochs never fall from batch to batch, and no checksum covers them. So where one does,
        it is a batch that is damaged, not the file: this one, or the one that stood out before.
        """
        epoch = batch.partition_leader_epoch
        before, self._last_offset = self._last_offset, batch.last_offset
        if epoch < NO_EPOCH:
            message = f"the batch is of leader epoch {epoch}, and there are none below -1"
            yield Finding(FindingKind.OFFSETS, path, message, batch.base_offset, position)
        if epoch < 0:
            return
        suspect, self._suspect = self._suspect, None
        if epoch < self._latest and suspect is not None:
            yield suspect._replace(kind=FindingKind.OFFSETS)
            self._latest = epoch
        elif suspect is not None:
            yield suspect._replace(path=self.path, position=None)
        if epoch < self._latest:
            message = f"the batch is of leader epoch {epoch}, after others of {self._latest}"
            yield Finding(FindingKind.OFFSETS, path, message, batch.base_offset, position)
            return
        is_new = epoch != self._latest
        self._latest = epoch
        if not self._is_usable or not is_new or batch.base_offset < log_start_offset:
            return
        if self._may_be_behind and epoch > max(self._epochs, default=NO_EPOCH):
            return
        slot = bisect_right(self._offsets, batch.base_offset) - 1
        noted = self._epochs[slot] if slot >= 0 else None
        if noted != epoch:
            message = (
                f"the batch at offset {batch.base_offset} is of leader epoch {epoch}, but the "
                f"file of epochs says {'nothing of it' if noted is None else noted}"
            )
            self._suspect = Finding(FindingKind.EPOCHS, path, message, batch.base_offset, position)
        elif self._offsets[slot] <= before and slot > 0:
            yield self._finding(
                f"epoch {epoch} begins at {self._offsets[slot]}, but a batch of an earlier one "
                f"ends with {before}",
                batch.base_offset,
            )

    def finish(self, log_end_offset: int) -> Iterator[Finding]:
        """The log has ended: no epoch can begin behind it."""
        if self._suspect is not None:
            yield self._suspect._replace(path=self.path, position=None)
        if self._is_usable and self._offsets and not self._may_be_behind:
            offset = self._offsets[-1]
            if offset > log_end_offset:
                yield self._finding(
                    f"epoch {self._epochs[-1]} begins at {offset}, but the log ends at "
                    f"{log_end_offset}",
                    offset,
                )

    def _finding(self, message: str, offset: int | None = None) -> Finding:
        return Finding(FindingKind.EPOCHS, self.path, message, offset)
