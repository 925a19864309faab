"""How far a streaming query is behind its topics, from the progress that Spark reports of it.

Spark's own source says so itself, as the metrics `minOffsetsBehindLatest` and the like of its part
of the progress. Spark takes no metrics from a source in Python; what they are made of, a batch's
end and the latest offsets, stands in the progress of either.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class OffsetsBehindLatest(NamedTuple):
    """Offsets between the end of a batch and the ends of the partitions."""

    total: int
    least: int
    """Of the partition that has fewest left."""
    most: int
    """Of the partition that has most left."""
    average: float
    """Of all partitions."""


def offsets_behind_latest(source: Any) -> OffsetsBehindLatest | None:
    """What Spark's own source reports as `minOffsetsBehindLatest`, `maxOffsetsBehindLatest` and
    `avgOffsetsBehindLatest` (KafkaMicroBatchStream.metrics), of that or of `format("odradek")`.

    Before Spark 4.2, where a source in Python cannot report the latest offsets, it is nothing but
    zeros with `odradek`.

    Args:
        source: one of the `sources` of a `StreamingQueryProgress`, as `query.lastProgress` is one.

    Returns:
        None: the progress has no such account, as that of a batch that a former run began.
    """
    try:
        reached, latest = (_read(source[name]) for name in ("endOffset", "latestOffset"))
    except ValueError:
        return None
    if not isinstance(reached, dict) or not isinstance(latest, dict):
        return None
    behind = [
        max(0, int(offset) - int(reached.get(topic, {}).get(partition, 0)))
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    ]
    total = sum(behind)
    return OffsetsBehindLatest(
        total, min(behind, default=0), max(behind, default=0), total / max(len(behind), 1)
    )


def _read(position: Any) -> Any:
    return json.loads(position) if isinstance(position, str) else position
