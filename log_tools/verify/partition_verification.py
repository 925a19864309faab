"""Verifying one partition's folder: every byte of its log, and what stands beside it.

The log is read once, front to back. Each batch goes past all the checks, so memory holds a
piece of the log, a piece of each index, and what is remembered of producers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import RecordBatch
from ...storage.file_names import TRANSACTION_INDEX_SUFFIX, segment_path
from ...storage.io.files import Files
from .batches import OffsetsCheck, SegmentBounds, check_records
from .finding import Finding, FindingKind, unusable
from .index_checks import IndexCheck, OffsetIndexCheck, TimeIndexCheck
from .replay import ProducerStateReplay
from .side_file_checks import EpochCheck, SnapshotCheck, TransactionIndexCheck
from .walk import Stretch, walk_batches

LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".swap", ".tmp")
INDEX_SUFFIXES = (".index", ".timeindex", TRANSACTION_INDEX_SUFFIX)


class PartitionOptions(NamedTuple):
    """How a partition is verified, and what its data folder knows of it."""

    deep: bool = False
    """Decode every record."""
    live: bool = False
    """A broker may be writing: what is not finished at the end is no damage."""
    log_start_offset: int = 0
    """As the data folder's checkpoint says."""
    is_compacted: bool = False
    """Whether the data folder's checkpoint says that the cleaner has worked on it."""
    recovery_point: int | None = None
    """As the data folder's checkpoint says, if the last broker was not stopped properly: the
    next start reads what follows it, and notes the aborted transactions that are missing."""
    ends: Mapping[str, int] = {}
    """Log files to be looked at as if they were cut at this many bytes."""


class TornTail(NamedTuple):
    """What lies behind the last whole batch of a log."""

    path: str
    position: int
    size: int


def list_segments(files: Files, directory: str) -> list[int]:
    """The base offsets of a folder's log files, rising."""
    return [
        int(name[:-4])
        for name in files.list_directory(directory)
        if name.endswith(".log") and name[:-4].isascii() and name[:-4].isdigit()
    ]


class PartitionVerification:
    """One reading of a partition's folder: `findings`, and then what it came to know.

    Args:
        directory: the partition's folder.
        options: how.
        on_bytes: called with the number of bytes that were read, for a progress bar.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        topic_partition: TopicPartition,
        options: PartitionOptions,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self._files = files
        self._directory = directory
        self._options = options
        self._on_bytes = on_bytes or (lambda size: None)
        self.base_offsets = list_segments(files, directory)
        self.torn_tail: TornTail | None = None
        first = self.base_offsets[0] if self.base_offsets else 0
        self._snapshots = SnapshotCheck(files, directory)
        states = self._snapshots.states_at(first)
        self.replay = ProducerStateReplay(
            topic_partition, first, states or {}, is_complete=first == 0 or states is not None
        )
        self.replay.has_gaps = options.is_compacted
        self._offsets = OffsetsCheck(first, is_compacted=options.is_compacted)
        self._epochs = EpochCheck(files, directory, may_be_behind=options.live)

    @property
    def log_end_offset(self) -> int:
        """The offset after the last whole batch; known when all findings have been taken."""
        return self.replay.offset

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong, in the order of the log."""
        yield from self._leftovers()
        yield from self._epochs.start()
        for index, base_offset in enumerate(self.base_offsets):
            following = self.base_offsets[index + 1 : index + 2]
            try:
                yield from self._segment(base_offset, following[0] if following else None)
            except OSError as error:
                yield from self._unreadable(base_offset, error)
        yield from self._offsets.finish()
        yield from self._snapshots.finish(self.replay, may_be_behind=self._options.live)
        yield from self._epochs.finish(self.log_end_offset)

    def _unreadable(self, base_offset: int, error: OSError) -> Iterator[Finding]:
        """The system refuses a file of a segment; the segments behind it are looked at still."""
        self._offsets.lose()
        self.replay.lose()
        if not (self._options.live and isinstance(error, FileNotFoundError)):
            path = error.filename or segment_path(self._directory, base_offset, ".log")
            yield unusable(FindingKind.UNREADABLE, path, error)

    def _leftovers(self) -> Iterator[Finding]:
        """One note about all the files that the next start will remove."""
        names = self._files.list_directory(self._directory)
        present = set(names)
        strays = [
            name
            for name in names
            if name.endswith(LEFTOVER_SUFFIXES)
            or (name.endswith(INDEX_SUFFIXES) and f"{name.partition('.')[0]}.log" not in present)
        ]
        if strays:
            message = (
                f"{len(strays)} of its files, such as {strays[0]}, are about to be removed by the "
                "broker, or were left behind by work that was interrupted; the next start removes "
                "those"
                if self._options.live
                else f"{len(strays)} of its files were left behind by work that was interrupted, "
                f"such as {strays[0]}; the next start removes them"
            )
            yield Finding(FindingKind.NOTE, self._directory, message)

    def _segment(self, base_offset: int, end_offset: int | None) -> Iterator[Finding]:
        path = segment_path(self._directory, base_offset, ".log")
        bounds = SegmentBounds(path, base_offset, end_offset)
        checks = _SegmentChecks(self._files, self._directory, base_offset)
        yield from checks.start()
        if base_offset > self.replay.offset:
            self.replay.skip_to(base_offset)
            yield from self._snapshots.before(base_offset, self.replay)
        file = self._files.open(path)
        end = self._options.ends.get(path, file.size())
        for stretch in walk_batches(file, end, base_offset):
            if stretch.batch is None or stretch.problem is not None:
                yield from self._damaged(stretch, bounds, end)
                checks.damaged_end = stretch.end
                self._offsets.lose()
                self.replay.lose()
            else:
                yield from self._batch(stretch, stretch.batch, bounds, checks)
            self._on_bytes(stretch.size)
        is_closed = end_offset is not None
        yield from checks.finish(
            self.replay,
            next_offset=self.log_end_offset,
            is_closed=is_closed,
            is_live=self._options.live and not is_closed,
        )

    def _batch(
        self, stretch: Stretch, batch: RecordBatch, bounds: SegmentBounds, checks: _SegmentChecks
    ) -> Iterator[Finding]:
        self.replay.skip_to(batch.base_offset)
        yield from self._snapshots.before(batch.base_offset, self.replay)
        yield from self._offsets.batch(bounds, stretch.position, batch)
        self.replay.has_gaps = self._offsets.has_gaps or self._offsets.is_compacted
        yield from checks.batch(stretch.position, batch)
        yield from self._epochs.batch(
            batch, bounds.path, stretch.position, self._options.log_start_offset
        )
        if stretch.has_records:
            yield from check_records(bounds.path, stretch.position, batch, deep=self._options.deep)
        aborted = self.replay.take_in(batch)
        if aborted is not None:
            may_miss = self._is_unfinished(bounds)
            yield from checks.transactions.aborted(aborted, self.replay, may_miss=may_miss)

    def _is_unfinished(self, bounds: SegmentBounds) -> bool:
        """Whether a segment's side files need not be complete yet."""
        recovery_point = self._options.recovery_point
        if bounds.end_offset is None:
            return self._options.live or recovery_point is not None
        return recovery_point is not None and bounds.end_offset > recovery_point

    def _damaged(self, stretch: Stretch, bounds: SegmentBounds, end: int) -> Iterator[Finding]:
        is_tail = stretch.end == end and bounds.end_offset is None
        offset = max(self._offsets.next_offset, bounds.base_offset)
        if is_tail and self._options.live:
            return
        if is_tail:
            self.torn_tail = TornTail(bounds.path, stretch.position, stretch.size)
            kind, which = FindingKind.TORN_TAIL, f"the last {stretch.size} bytes"
        else:
            kind, which = FindingKind.BATCH, f"{stretch.size} bytes"
        what = f"{which} are no whole batch: {stretch.problem}"
        if stretch.batch is not None:
            what = f"the batch of {stretch.size} bytes {stretch.problem}"
        yield Finding(kind, bounds.path, what, offset, stretch.position)


class _SegmentChecks:
    """The indexes of one segment."""

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        def path(suffix: str) -> str:
            return segment_path(directory, base_offset, suffix)

        self._base_offset = base_offset
        self._indexes: tuple[IndexCheck, ...] = (
            OffsetIndexCheck(files, path(".index"), base_offset),
            TimeIndexCheck(files, path(".timeindex"), base_offset),
        )
        self.transactions = TransactionIndexCheck(files, path(TRANSACTION_INDEX_SUFFIX))
        self.damaged_end: int | None = None
        """Where damaged bytes end that no whole batch has followed yet."""
        self._is_empty = True

    def start(self) -> Iterator[Finding]:
        for index in self._indexes:
            yield from index.start()
        yield from self.transactions.start()

    def batch(self, position: int, batch: RecordBatch) -> Iterator[Finding]:
        self._is_empty = False
        for index in self._indexes:
            if self.damaged_end is not None:
                yield from index.skip(self.damaged_end, batch.base_offset)
            yield from index.batch(position, batch)
        self.damaged_end = None

    def finish(
        self, replay: ProducerStateReplay, *, next_offset: int, is_closed: bool, is_live: bool
    ) -> Iterator[Finding]:
        if is_live:
            return
        for index in self._indexes:
            if self.damaged_end is not None and is_closed:
                yield from index.skip(self.damaged_end, next_offset + 2**62)
            yield from index.finish(is_closed=is_closed, is_empty=self._is_empty)
        yield from self.transactions.finish(self._base_offset, next_offset, replay)
