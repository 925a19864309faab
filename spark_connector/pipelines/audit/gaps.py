"""Offsets without a record: what explains them, and what nothing does.

A client sees no record at the offset of a transaction's marker, of an aborted record, and of one
that compaction has removed. The batches of the partition tell those from a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...worker_imports import forget_zip_importers
from ..replicas.batch_headers import BatchHeader, batch_headers
from .report import SAMPLES_MAX, AuditFault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Partition = tuple[str, int]

EXPLAINED = "topic STRING, partition INT, explained BIGINT, holes BIGINT, samples ARRAY<STRING>"


class OffsetSpan(NamedTuple):
    """Offsets that follow each other."""

    begin: int
    until: int
    """The one behind the last."""

    def __str__(self) -> str:
        last = self.until - 1
        return f"offset {last}" if last == self.begin else f"offsets {self.begin} to {last}"


def holes(
    runs: Iterable[OffsetSpan], batches: Iterable[BatchHeader], compacted: bool
) -> Iterator[OffsetSpan]:
    """The parts of runs of missing offsets that no batch explains.

    Args:
        runs: in order.
        batches: of the partition, in order, from the first run on.
        compacted: whether its topic is; then a missing record, or a whole batch, says nothing.
    """
    if compacted:
        return
    following = iter(batches)
    batch = next(following, None)
    for run in runs:
        position = run.begin
        while position < run.until:
            while batch is not None and batch.last_offset < position:
                batch = next(following, None)
            if batch is None or batch.base_offset >= run.until:
                yield OffsetSpan(position, run.until)
                break
            if batch.base_offset > position:
                yield OffsetSpan(position, batch.base_offset)
                position = batch.base_offset
            end = min(run.until, batch.last_offset + 1)
            if not (batch.is_control or batch.is_transactional):
                # A batch of plain records has each of its offsets, unless it was compacted.
                yield OffsetSpan(position, end)
            position = end


def explained_gaps(
    missing: DataFrame, bootstrap_servers: str, compacted: Mapping[str, bool]
) -> Iterator[tuple[Partition, int, AuditFault | None]]:
    """For each partition with missing offsets: how many are explained, and a fault for the rest.

    Args:
        missing: rows of topic, partition, begin, until.
        bootstrap_servers: of the cluster.
        compacted: which topics are.
    """
    is_compacted = dict(compacted)

    def explain(table: Any) -> Any:
        import pyarrow as pa

        forget_zip_importers()
        rows = table.sort_by("begin").to_pylist()
        topic, partition = rows[0]["topic"], rows[0]["partition"]
        runs = [OffsetSpan(row["begin"], row["until"]) for row in rows]
        batches = batch_headers(bootstrap_servers, topic, partition, runs[0].begin, runs[-1].until)
        found: list[str] = []
        count = 0
        for hole in holes(runs, batches, is_compacted.get(topic, False)):
            count += hole.until - hole.begin
            if len(found) < SAMPLES_MAX:
                found.append(str(hole))
        total = sum(run.until - run.begin for run in runs)
        columns = [[topic], [partition], [total - count], [count], [found]]
        kinds = [pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.list_(pa.string())]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
        return pa.Table.from_arrays(arrays, ["topic", "partition", "explained", "holes", "samples"])

    by_partition = missing.groupBy("topic", "partition")
    for row in sorted(by_partition.applyInArrow(explain, EXPLAINED).collect()):
        where = (row["topic"], row["partition"])
        fault = (
            AuditFault("gap", *where, row["holes"], tuple(row["samples"])) if row["holes"] else None
        )
        yield where, row["explained"], fault
