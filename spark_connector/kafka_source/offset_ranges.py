"""What one task reads: a range of one partition's offsets (Spark's KafkaOffsetRangeCalculator)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from pyspark.sql.datasource import InputPartition


class OffsetRange(InputPartition):
    """Some offsets of one partition.

    Args:
        topic: its name.
        partition: its number.
        start: the first offset.
        until: the first offset behind the last.
    """

    def __init__(self, topic: str, partition: int, start: int, until: int) -> None:
        super().__init__(None)
        self.topic = topic
        self.partition = partition
        self.start = start
        self.until = until

    @property
    def size(self) -> int:
        """How many offsets; compaction and transactions leave fewer records."""
        return self.until - self.start

    def divided(self, parts: int) -> list[OffsetRange]:
        """As many ranges of about the same size, one after another; none of them empty."""
        bounds = [self.start + self.size * part // parts for part in range(parts + 1)]
        return [
            OffsetRange(self.topic, self.partition, start, until)
            for start, until in pairwise(bounds)
            if until > start
        ]


def divide(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """One task per range, more where they are too large or too few.

    Args:
        ranges: at most one of each partition; empty ones are dropped.
        min_partitions: about so many tasks at least, the large ranges being divided.
        max_records: no task gets more offsets than that.
    """
    found = [each for each in ranges if each.size > 0]
    if max_records is not None:
        found = [part for each in found for part in each.divided(-(-each.size // max_records))]
    if min_partitions is None or len(found) >= min_partitions:
        return found
    # What is too small to be divided is left out of the proportions of the others.
    total = sum(each.size for each in found)
    small = {id(each) for each in found if _parts(each.size, total, min_partitions) == 1}
    large = sum(each.size for each in found if id(each) not in small)
    count = max(min_partitions - len(small), 1)
    return [
        part
        for each in found
        for part in ([each] if id(each) in small else each.divided(_parts(each.size, large, count)))
    ]


def _parts(size: int, total: int, count: int) -> int:
    return max(int(size / total * count + 0.5), 1)
