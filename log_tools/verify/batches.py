"""The batches of one segment: whole, in order, in their place, and full of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...common.errors import KafkaError
from ...protocol.compression.codecs import DECOMPRESSED_BYTES_MAX, Compression
from ...protocol.compression.decompression import decompress
from ...protocol.records.batch import BATCH_HEADER_BYTES, DELETE_HORIZON_FLAG, RecordBatch
from ...protocol.records.records import iter_records
from ...protocol.records.walk import lengths_add_up
from ...storage.segment.log_segment import OFFSETS_MAX
from .finding import Finding, FindingKind

MISORDERED_MAX = 20
"""Of one partition: after so many batches in a wrong order, the rest is not reported."""


class SegmentBounds(NamedTuple):
    """Where a segment's offsets must lie."""

    path: str
    """Of its log file."""
    base_offset: int
    end_offset: int | None
    """The next segment's base offset; None of the last segment."""


def has_been_compacted(batch: RecordBatch) -> bool:
    """Whether a batch shows that compaction took records out of it."""
    return batch.records_count <= batch.last_offset_delta or bool(
        batch.attributes & DELETE_HORIZON_FLAG
    )


class OffsetsCheck:
    """Offsets rise from batch to batch, and only compaction leaves out some.

    Args:
        next_offset: what the log's first batch begins with.
        is_compacted: whether the cleaner has worked on the partition.
    """

    def __init__(self, next_offset: int, *, is_compacted: bool) -> None:
        self.next_offset = next_offset
        self.is_compacted = is_compacted
        self.has_gaps = False
        self._is_after_damage = False
        self._reported = 0
        self._gaps: list[Finding] = []
        """Told at the end, unless a batch showed by then that there was compaction."""

    def lose(self) -> None:
        """Batches are damaged here: what comes next need not follow what came before."""
        self._is_after_damage = True

    def batch(self, segment: SegmentBounds, position: int, batch: RecordBatch) -> Iterator[Finding]:
        """Look at the next batch of the partition."""
        self.is_compacted = self.is_compacted or has_been_compacted(batch)
        problem = _misplaced(segment, batch)
        is_placed = problem is None
        if is_placed:
            first, expected = batch.base_offset, self.next_offset
            if first < expected:
                problem = f"the batch begins at offset {first}, but {expected - 1} came before it"
            elif first > expected:
                self._gap(segment, position, first)
            self.next_offset = batch.next_offset
        self._is_after_damage = not is_placed
        if problem is not None and self._reported < MISORDERED_MAX:
            self._reported += 1
            yield Finding(FindingKind.OFFSETS, segment.path, problem, batch.base_offset, position)

    def _gap(self, segment: SegmentBounds, position: int, first: int) -> None:
        self.has_gaps = True
        if not self._is_after_damage and len(self._gaps) < MISORDERED_MAX:
            message = (
                f"offsets {self.next_offset} to {first - 1} are missing, and nothing says that "
                "the topic is compacted"
            )
            self._gaps.append(Finding(FindingKind.OFFSETS, segment.path, message, first, position))

    def finish(self) -> Iterator[Finding]:
        """The log has ended: the gaps in it, if compaction is not what left them."""
        if not self.is_compacted:
            yield from self._gaps


def _misplaced(segment: SegmentBounds, batch: RecordBatch) -> str | None:
    first, last = batch.base_offset, batch.last_offset
    if first < segment.base_offset or last - segment.base_offset > OFFSETS_MAX:
        return f"offsets {first} to {last} do not belong into this segment"
    if segment.end_offset is not None and last >= segment.end_offset:
        return (
            f"the batch ends at offset {last}, but the next segment begins at {segment.end_offset}"
        )
    return None


def check_records(path: str, position: int, batch: RecordBatch, *, deep: bool) -> Iterator[Finding]:
    """Whether the records fill their batch, and are as many as its header says.

    Args:
        path: of the log file.
        position: of the batch in it.
        batch: whole, its checksum right.
        deep: decode every record, and look at its offset too.
    """
    problem = _problem_of_records(batch, deep=deep)
    if problem is not None:
        yield Finding(FindingKind.RECORDS, path, problem, batch.base_offset, position)


def _problem_of_records(batch: RecordBatch, *, deep: bool) -> str | None:
    count = batch.records_count
    if not 0 <= count <= batch.last_offset_delta + 1:
        return (
            f"the batch says it has {count} records in the offsets {batch.base_offset} to "
            f"{batch.last_offset}"
        )
    try:
        if deep:
            return _problem_when_decoded(batch)
        if batch.compression is Compression.NONE:
            start = batch.position + BATCH_HEADER_BYTES
            end = batch.position + batch.size_in_bytes
            adds_up = lengths_add_up(batch.buffer, start, end, count)
        else:
            data = decompress(batch.compression, batch.records_section(), DECOMPRESSED_BYTES_MAX)
            adds_up = lengths_add_up(data, 0, len(data), count)
    except KafkaError as error:
        return f"the records cannot be read: {error.message}"
    return None if adds_up else f"{count} records do not fill the batch"


def _problem_when_decoded(batch: RecordBatch) -> str | None:
    expected = batch.base_offset
    for record in iter_records(batch):
        if not expected <= record.offset <= batch.last_offset:
            return f"the record of offset {record.offset} stands where {expected} is due"
        expected = record.offset + 1
    return None
