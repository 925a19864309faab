"""Whose open transactions would commit offsets here: told when a marker ends one of them.

A producer's marker stands in the partition of `__consumer_offsets`, and ends what it would
commit for every group that is kept there. Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..classic.group import Group
from ..consumer.group import ConsumerGroup

FindGroup = Callable[[str], Group | ConsumerGroup | None]
"""The group of an id, None if there is none any more."""


class OpenTransactions:
    """The groups of one partition that each producer would commit offsets for."""

    __slots__ = ("_group_ids",)

    def __init__(self) -> None:
        self._group_ids: dict[int, set[str]] = {}

    def __len__(self) -> int:
        """How many producers there are."""
        return len(self._group_ids)

    def note(self, producer_id: int, group_id: str) -> None:
        """A producer's transaction has an offset for a group, or is about to."""
        self._group_ids.setdefault(producer_id, set()).add(group_id)

    def end(self, producer_id: int, find_group: FindGroup, *, committed: bool) -> None:
        """A marker has ended the producer's transaction, if there was one.

        What it would commit may be on its way still, since replicas tell of what they have in
        any order: the end comes after it, as in the log.
        """
        for group_id in self._group_ids.pop(producer_id, ()):
            group = find_group(group_id)
            if group is not None:
                end = partial(group.offsets.end_transaction, producer_id, committed=committed)
                group.in_flight.when_settled(end)
