"""A stream's offsets as Spark's own source writes them: `{"topic": {"0": 23}}`."""

from __future__ import annotations

from typing import Any

from ..errors import SparkConnectorError
from .cluster import Offsets


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """The form that stands in checkpoints; topics and partitions are in order."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_json(written: Any) -> Offsets:
    """What a checkpoint holds.

    Raises:
        SparkConnectorError: no stream of this source has written it.
    """
    try:
        return {
            (str(topic), int(partition)): int(offset)
            for topic, partitions in written.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise SparkConnectorError(
            f"the checkpoint holds {written!r}, which are no offsets of topics; give the query"
            " another 'checkpointLocation'"
        ) from None
