"""Whose open transactions would commit offsets here: told when a marker ends one of them.

A producer's marker stands in the partition of `__consumer_offsets`, and ends what it would
commit for every group that is kept there. Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable

from .offsets import GroupOffsets

FindOffsets = Callable[[str], GroupOffsets | None]
"""A group's offsets, None if there is no such group any more."""


class OpenTransactions:
    """The groups of one partition that each producer would commit offsets for."""

    __slots__ = ("_group_ids",)

    def __init__(self) -> None:
        self._group_ids: dict[int, set[str]] = {}

    def __len__(self) -> int:
        """How many producers there are."""
        return len(self._group_ids)

    def note(self, producer_id: int, group_id: str) -> None:
        """A producer's transaction has an offset for a group."""
        self._group_ids.setdefault(producer_id, set()).add(group_id)

    def end(self, producer_id: int, find_offsets: FindOffsets, *, committed: bool) -> None:
        """A marker has ended the producer's transaction, if there was one."""
        for group_id in self._group_ids.pop(producer_id, ()):
            offsets = find_offsets(group_id)
            if offsets is not None:
                offsets.end_transaction(producer_id, committed=committed)
