"""What one task reads of logs: batches between two positions of a segment, or several such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql.datasource import InputPartition

GROUP_BYTES = 4 << 20
"""Slices smaller than that share a task: a task costs as much as reading so many bytes."""

Aborted = tuple[int, int, int]
"""A transaction: the producer's id, the first offset, the marker's offset."""


class LogSlice(InputPartition):
    """Some batches of one segment.

    Args:
        folder: as the user gave it.
        path: of the segment's log file.
        topic: its name.
        partition: its number.
        segment: the base offset.
        start_position: where the first batch begins.
        end_position: where the slice ends: another begins there, or the file ends.
        is_tail: whether what is not whole at the end is only what a crash left.
        first_offset: records before it are left out.
        until_offset: nor one from it on.
        aborted: transactions whose records are left out.
    """

    def __init__(
        self,
        folder: str,
        path: str,
        topic: str,
        partition: int,
        segment: int,
        start_position: int,
        end_position: int,
        *,
        is_tail: bool,
        first_offset: int,
        until_offset: int,
        aborted: tuple[Aborted, ...] = (),
    ) -> None:
        super().__init__(None)
        self.folder = folder
        self.path = path
        self.topic = topic
        self.partition = partition
        self.segment = segment
        self.start_position = start_position
        self.end_position = end_position
        self.is_tail = is_tail
        self.first_offset = first_offset
        self.until_offset = until_offset
        self.aborted = aborted

    @property
    def size(self) -> int:
        """In bytes of the file."""
        return self.end_position - self.start_position


class SliceGroup(InputPartition):
    """Slices that one task reads, one after another.

    Args:
        slices: at least one.
    """

    def __init__(self, slices: Iterable[LogSlice]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)


def grouped(slices: Iterable[LogSlice], group_bytes: int) -> Iterator[SliceGroup]:
    """Slices in their order, small neighbours together.

    Args:
        slices: of any logs.
        group_bytes: a group has no more, unless a single slice has.
    """
    group: list[LogSlice] = []
    size = 0
    for each in slices:
        if group and size + each.size > group_bytes:
            yield SliceGroup(group)
            group, size = [], 0
        group.append(each)
        size += each.size
    if group:
        yield SliceGroup(group)
