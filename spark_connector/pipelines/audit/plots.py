"""The numbers of an audit's plots, counted by Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .report import Bar, PartitionAudit, Plot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIME_BARS = 48
PARTITION_BARS_MAX = 64


def plots_of(frame: DataFrame, audits: Sequence[PartitionAudit]) -> list[Plot]:
    """Plots of a frame that `audit_frames.narrow` made; none of an empty one."""
    if not any(each.records for each in audits):
        return []
    return [_by_partition(audits), *_by_time(frame, audits), _by_size(frame), *_by_latency(frame)]


def _by_partition(audits: Sequence[PartitionAudit]) -> Plot:
    most = sorted(audits, key=lambda each: -each.records)[:PARTITION_BARS_MAX]
    shown = [each for each in audits if each in most]
    title = "Records by partition"
    if len(shown) < len(audits):
        title += f" (the {len(shown)} largest of {len(audits)})"
    return Plot(title, "records", tuple(Bar(f"{p.topic}-{p.partition}", p.records) for p in shown))


def _by_time(frame: DataFrame, audits: Sequence[PartitionAudit]) -> Iterator[Plot]:
    from pyspark.sql import functions as F

    first = min(each.first_ms for each in audits if each.first_ms is not None)
    last = max(each.last_ms for each in audits if each.last_ms is not None)
    width = (last - first) // TIME_BARS + 1
    rows = frame.groupBy(F.floor((F.col("ms") - first) / width).alias("bar")).count().collect()
    counts = {row["bar"]: row["count"] for row in rows}
    bars = [Bar(_moment(first + bar * width), counts.get(bar, 0)) for bar in range(TIME_BARS)]
    yield Plot("Records by timestamp (UTC)", "records", tuple(bars))


def _moment(ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def _by_size(frame: DataFrame) -> Plot:
    return _by_power(frame, "bytes", "Records by size of key and value", "bytes")


def _by_latency(frame: DataFrame) -> Iterator[Plot]:
    known = frame.where("latency IS NOT NULL")
    plot = _by_power(known, "latency", "Records by latency", "ms")
    if plot.bars:
        yield plot


def _by_power(frame: DataFrame, column: str, title: str, unit: str) -> Plot:
    """How many have 0, 1, 2-3, 4-7, 8-15 ... of it."""
    from pyspark.sql import functions as F

    at_least_0 = F.greatest(F.col(column), F.lit(0))
    power = F.ceil(F.log2(at_least_0 + 1)).cast("int")
    rows = frame.groupBy(power.alias("power")).count().collect()
    counts = {row["power"]: row["count"] for row in rows}
    if not counts:
        return Plot(title, "records", ())
    bars = []
    for number in range(min(counts), max(counts) + 1):
        most = 2**number - 1
        least = 2 ** (number - 1) if number else 0
        label = f"{most:,} {unit}" if least >= most else f"{least:,} to {most:,} {unit}"
        bars.append(Bar(label, counts.get(number, 0)))
    return Plot(title, "records", tuple(bars))
