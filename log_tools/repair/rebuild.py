"""Rebuilding the side files of a partition from its batches.

Each is replaced in one step, so that an interruption leaves the old one or the new. Damaged
batches are skipped; nothing here writes to a log.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...common.sentinels import NO_TIMESTAMP
from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import RecordBatch
from ...storage.checkpoint.checkpoint_file import write_epochs
from ...storage.file_names import (
    EPOCHS_FILE,
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_path,
    snapshot_path,
)
from ...storage.index.offset_index import OffsetIndex
from ...storage.index.time_index import TimeIndex
from ...storage.index.transaction_index import ABORTED_TRANSACTION as TRANSACTION_ENTRY
from ...storage.index.transaction_index import TRANSACTION_INDEX_VERSION as TRANSACTION_VERSION
from ...storage.index.transaction_index import AbortedTxn
from ...storage.io.files import Files
from ...storage.log.log_config import LogConfig
from ...storage.producer_state.producer_snapshot import encode_snapshot
from ..verify.partition_verification import list_segments
from ..verify.replay import ProducerStateReplay
from ..verify.side_file_checks import SnapshotCheck, read_transactions
from ..verify.walk import walk_batches

INDEX_INTERVAL_BYTES = LogConfig().index_interval_bytes
"""Kafka's default; what the topic has is known to brokers only, and matters little."""


@dataclass
class RebuildPlan:
    """Which of a partition's side files have to be rebuilt."""

    indexes: set[int] = field(default_factory=set)
    """Base offsets of the segments whose offset and time index are wrong."""
    transactions: set[int] = field(default_factory=set)
    """Base offsets of the segments whose transaction index is wrong."""
    snapshots: set[int] = field(default_factory=set)
    """Offsets of the snapshots that are wrong."""
    epochs: bool = False

    @property
    def needs_all_segments(self) -> bool:
        """Whether what comes before a segment matters."""
        return bool(self.transactions or self.snapshots or self.epochs)

    def __bool__(self) -> bool:
        return bool(self.indexes) or self.needs_all_segments


class _SegmentIndexes:
    """The offset and the time index of one segment, as a broker would have written them."""

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        offset_path = segment_path(directory, base_offset, INDEX_SUFFIX)
        time_path = segment_path(directory, base_offset, TIME_INDEX_SUFFIX)
        self._offsets = OffsetIndex(files, offset_path, base_offset, is_new=True)
        self._times = TimeIndex(files, time_path, base_offset, is_new=True)
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max = base_offset
        self._entry_at = 0

    def batch(self, position: int, batch: RecordBatch) -> None:
        if batch.max_timestamp > self._max_timestamp:
            self._max_timestamp = batch.max_timestamp
            self._offset_of_max = batch.last_offset
        if position - self._entry_at > INDEX_INTERVAL_BYTES:
            self._offsets.append(batch.last_offset, position)
            self._times.maybe_append(self._max_timestamp, self._offset_of_max)
            self._entry_at = position

    def write(self) -> None:
        self._times.maybe_append(self._max_timestamp, self._offset_of_max)
        self._offsets.replace_file()
        self._times.replace_file()


class PartitionRebuild:
    """Carries out a plan.

    Args:
        directory: the partition's folder.
        plan: which files.
        log_start_offset: no epoch begins before it.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        topic_partition: TopicPartition,
        plan: RebuildPlan,
        *,
        log_start_offset: int,
    ) -> None:
        self._files = files
        self._directory = directory
        self._topic_partition = topic_partition
        self._plan = plan
        self._log_start_offset = log_start_offset
        self._base_offsets = list_segments(files, directory)
        self._snapshots_due: list[int] = []

    def run(self) -> None:
        """Read the log and write the files.

        Raises:
            OSError: the disk fails; what was written is whole.
        """
        plan = self._plan
        first = self._base_offsets[0] if self._base_offsets else 0
        snapshots = SnapshotCheck(self._files, self._directory)
        states = snapshots.states_at(first) if first not in plan.snapshots else None
        replay = ProducerStateReplay(
            self._topic_partition, first, states or {}, is_complete=first == 0 or states is not None
        )
        self._snapshots_due = sorted(plan.snapshots)
        for base_offset in self._base_offsets:
            if plan.needs_all_segments or base_offset in plan.indexes:
                self._segment(base_offset, replay, snapshots)
        for offset in self._snapshots_due:
            self._snapshot(offset, replay, is_needed=offset == replay.offset)
        if plan.epochs:
            self._write_epochs(replay)
        self._files.sync_directory(self._directory)

    def _segment(
        self, base_offset: int, replay: ProducerStateReplay, snapshots: SnapshotCheck
    ) -> None:
        file = self._files.open(segment_path(self._directory, base_offset, ".log"))
        indexes = _SegmentIndexes(self._files, self._directory, base_offset)
        aborted: list[AbortedTxn] = []
        for stretch in walk_batches(file, file.size(), base_offset):
            batch = stretch.batch
            if batch is None or stretch.problem is not None:
                replay.lose()
                continue
            self._take_snapshots(batch.base_offset, replay, snapshots)
            indexes.batch(stretch.position, batch)
            ended = replay.take_in(batch)
            if ended is not None:
                aborted.append(ended)
        if base_offset in self._plan.indexes:
            indexes.write()
        if base_offset in self._plan.transactions:
            self._write_transactions(base_offset, aborted, replay)

    def _take_snapshots(
        self, offset: int, replay: ProducerStateReplay, snapshots: SnapshotCheck
    ) -> None:
        if not replay.is_complete:
            replay.skip_to(offset)
            states = snapshots.states_at(replay.offset)
            if states is not None and replay.offset not in self._plan.snapshots:
                replay.begin_again(states)
        while self._snapshots_due and self._snapshots_due[0] <= offset:
            due = self._snapshots_due.pop(0)
            self._snapshot(due, replay, is_needed=due in self._base_offsets)

    def _snapshot(self, offset: int, replay: ProducerStateReplay, *, is_needed: bool) -> None:
        """Write a snapshot, or remove it where its contents are not known or not needed."""
        path = snapshot_path(self._directory, offset)
        if replay.is_complete and is_needed:
            self._files.write_atomically(path, encode_snapshot(replay.states), sync=True)
        else:
            self._files.remove(path)

    def _write_transactions(
        self, base_offset: int, aborted: list[AbortedTxn], replay: ProducerStateReplay
    ) -> None:
        path = segment_path(self._directory, base_offset, TRANSACTION_INDEX_SUFFIX)
        entries: Mapping[int, AbortedTxn] = {entry.last_offset: entry for entry in aborted}
        if not replay.is_complete:
            # what began before the log does is known to the old index alone
            entries = {**entries, **self._readable_transactions(path, base_offset, replay.offset)}
        data = b"".join(
            TRANSACTION_ENTRY.pack(TRANSACTION_VERSION, *entries[offset])
            for offset in sorted(entries)
        )
        if data:
            self._files.write_atomically(path, data, sync=True)
        else:
            self._files.remove(path)

    def _readable_transactions(self, path: str, first: int, end: int) -> dict[int, AbortedTxn]:
        try:
            entries = read_transactions(self._files, path)
        except ValueError:
            return {}
        return {entry.last_offset: entry for entry in entries if first <= entry.last_offset < end}

    def _write_epochs(self, replay: ProducerStateReplay) -> None:
        path = os.path.join(self._directory, EPOCHS_FILE)
        epochs = [(epoch, max(offset, self._log_start_offset)) for epoch, offset in replay.epochs]
        # of several that began before the log does, the last is the one it begins with
        kept = [
            entry
            for entry, following in zip(epochs, [*epochs[1:], None], strict=True)
            if following is None or following[1] > entry[1]
        ]
        write_epochs(self._files, path, kept)
