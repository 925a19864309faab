"""Batches that a log has accepted in this pass and not written yet."""

from __future__ import annotations

from ...protocol.records.batch import Buffer

StagedBatch = tuple[int, int, int, int, int]
"""Base offset, last offset, max timestamp, size, leader epoch: a plain tuple, since one is
made for every batch appended."""


class StagedAppends:
    """Batches bound for one segment.

    Args:
        position: where in the segment's file the first will lie.
        new_base_offset: of the segment to be begun for them; None for the active one.
        created_ms: the wall time at which that segment is begun.
    """

    __slots__ = ("batches", "buffers", "created_ms", "new_base_offset", "position", "size")

    def __init__(
        self, position: int, new_base_offset: int | None = None, created_ms: int = 0
    ) -> None:
        self.position = position
        self.new_base_offset = new_base_offset
        self.created_ms = created_ms
        self.batches: list[StagedBatch] = []
        self.buffers: list[Buffer] = []
        self.size = 0

    def published(self) -> None:
        """Begin anew behind what has been written to the active segment."""
        self.batches.clear()
        self.buffers.clear()
        self.position += self.size
        self.size = 0
