"""The state of one share partition as its coordinator keeps it, and how batches are combined.

Source: Kafka's ShareGroupOffset and PersisterStateBatchCombiner.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush, merge
from operator import attrgetter
from typing import NamedTuple

from ...runtime.steps import Steps, sorted_in_steps
from .operations import NO_COMPLETE_COUNT, UNINITIALIZED_OFFSET, StateBatch

_first_offset = attrgetter("first_offset")
_last_offset = attrgetter("last_offset")


class ShareState(NamedTuple):
    """What is known of a share partition.

    Attributes:
        snapshot_epoch: counts the snapshots; an update is of one of them.
        state_epoch: counts how often it was begun anew.
        leader_epoch: of the latest leader that was heard of.
        batches: in the order of offsets, none over another, none before `start_offset`.
        create_ms: wall time of the last snapshot that a change led to.
        write_ms: wall time of the last snapshot, which may be a copy of that one.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int = UNINITIALIZED_OFFSET
    delivery_complete_count: int = NO_COMPLETE_COUNT
    batches: Sequence[StateBatch] = ()
    create_ms: int = 0
    write_ms: int = 0

    def updated(
        self,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Steps[ShareState]:
        """The state after an update; -1 leaves epoch and start offset as they are.

        A leader's updates may come in any order, for one that was not answered is sent again: none
        takes back what a later one has said.
        """
        start = max(self.start_offset, start_offset)
        if UNINITIALIZED_OFFSET != start_offset < start:
            delivery_complete_count = self.delivery_complete_count
        return self._replace(
            leader_epoch=max(self.leader_epoch, leader_epoch),
            start_offset=start,
            delivery_complete_count=delivery_complete_count,
            batches=(yield from combine(self.batches, batches, start)),
        )


def combine(
    before: Sequence[StateBatch], updates: Sequence[StateBatch], start_offset: int
) -> Steps[Sequence[StateBatch]]:
    """Batches put together in order, as few as can be; in which order they came does not matter.

    Of each record that counts what was said of its latest delivery, and of one delivery that it is
    done with (PersisterStateBatchCombiner.compareBatchDeliveryInfo). What is neither updated nor
    beside that stays as it is, and is not looked at.

    Args:
        before: in order, none over another.
        updates: of the same records, or others.
        start_offset: what is before it is left out.
    """
    kept = before[bisect_left(before, start_offset, key=_last_offset) :]
    if kept and kept[0].first_offset < start_offset:
        kept = (kept[0]._replace(first_offset=start_offset), *kept[1:])
    new = []
    last = start_offset
    for each in updates:
        yield
        first = max(each.first_offset, start_offset)
        if first <= each.last_offset:
            new.append(each._replace(first_offset=first))
            last = max(last, each.last_offset)
    if not new:
        return kept
    new = yield from sorted_in_steps(new)
    low = bisect_left(kept, new[0].first_offset - 1, key=_last_offset)
    high = bisect_right(kept, last + 1, key=_first_offset)
    sweep = _Sweep()
    for batch in merge(kept[low:high], new):
        yield
        yield from sweep.add(batch)
    return (*kept[:low], *(yield from sweep.end()), *kept[high:])


class _Sweep:
    """Goes along the offsets, and keeps of each record the batch that counts most."""

    def __init__(self) -> None:
        self._offset = 0
        self._open: list[tuple[int, int, int]] = []
        self._made: list[StateBatch] = []

    def add(self, batch: StateBatch) -> Steps[None]:
        """One more batch, that begins no earlier than the one before."""
        yield from self._go_to(batch.first_offset)
        self._offset = batch.first_offset
        # What counts most comes first; of two states that of a record that is done with is the
        # higher number.
        heappush(self._open, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))

    def end(self) -> Steps[list[StateBatch]]:
        """There are no more; returns what was kept."""
        yield from self._go_to(None)
        return self._made

    def _go_to(self, offset: int | None) -> Steps[None]:
        """Keep what counts before an offset, or to the end."""
        while self._open and (offset is None or self._offset < offset):
            yield
            count, state, last = self._open[0]
            if last < self._offset:
                heappop(self._open)
                continue
            if offset is not None:
                last = min(last, offset - 1)
            self._keep(StateBatch(self._offset, last, -state, -count))
            self._offset = last + 1

    def _keep(self, batch: StateBatch) -> None:
        """Neighbours of one state and count are one."""
        former = self._made[-1] if self._made else None
        if former and former.last_offset + 1 == batch.first_offset and former[2:] == batch[2:]:
            self._made[-1] = former._replace(last_offset=batch.last_offset)
        else:
            self._made.append(batch)
