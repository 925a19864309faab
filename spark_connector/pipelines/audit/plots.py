"""The numbers of an audit's plots, counted by Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .report import Bar, PartitionAudit, Plot

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIME_BARS = 48
PARTITION_BARS_MAX = 64


def plots_of(frame: DataFrame, audits: Sequence[PartitionAudit]) -> list[Plot]:
    """Plots of a frame that `narrow` made; none of an empty one.

    One query counts the records of each bar of one plot that are in each bar of the others.
    """
    from pyspark.sql import functions as F

    if not any(each.records for each in audits):
        return []
    first = min(each.first_ms for each in audits if each.first_ms is not None)
    last = max(each.last_ms for each in audits if each.last_ms is not None)
    width = (last - first) // TIME_BARS + 1
    rows = (
        frame.groupBy(
            F.floor((F.col("ms") - first) / width).alias("bar"),
            _power("bytes").alias("size"),
            _power("latency").alias("latency"),
        )
        .count()
        .collect()
    )
    plots = [
        _by_partition(audits),
        _by_time(_summed(rows, "bar"), first, width),
        _by_power(_summed(rows, "size"), "Records by size of key and value", "bytes"),
    ]
    latencies = _summed(rows, "latency")
    return [*plots, _by_power(latencies, "Records by latency", "ms")] if latencies else plots


def _power(column: str) -> Column:
    """In which of 0, 1, 2-3, 4-7, 8-15 ... it is; null stays null."""
    from pyspark.sql import functions as F

    power = F.ceil(F.log2(F.greatest(F.col(column), F.lit(0)) + 1)).cast("int")
    return F.when(F.col(column).isNotNull(), power)


def _summed(rows: Iterable[Any], column: str) -> dict[int, int]:
    """How many records have each value of a column that is not null."""
    counts: Counter[int] = Counter()
    for row in rows:
        if row[column] is not None:
            counts[row[column]] += row["count"]
    return dict(counts)


def _by_partition(audits: Sequence[PartitionAudit]) -> Plot:
    most = sorted(audits, key=lambda each: -each.records)[:PARTITION_BARS_MAX]
    shown = [each for each in audits if each in most]
    title = "Records by partition"
    if len(shown) < len(audits):
        title += f" (the {len(shown)} largest of {len(audits)})"
    return Plot(title, "records", tuple(Bar(f"{p.topic}-{p.partition}", p.records) for p in shown))


def _by_time(counts: Mapping[int, int], first: int, width: int) -> Plot:
    bars = [Bar(_moment(first + bar * width), counts.get(bar, 0)) for bar in range(TIME_BARS)]
    return Plot("Records by timestamp (UTC)", "records", tuple(bars))


def _moment(ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def _by_power(counts: Mapping[int, int], title: str, unit: str) -> Plot:
    bars = []
    for number in range(min(counts), max(counts) + 1):
        most = 2**number - 1
        least = 2 ** (number - 1) if number else 0
        label = f"{most:,} {unit}" if least >= most else f"{least:,} to {most:,} {unit}"
        bars.append(Bar(label, counts.get(number, 0)))
    return Plot(title, "records", tuple(bars))
