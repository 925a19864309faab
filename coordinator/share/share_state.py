"""The state of one share partition as its coordinator keeps it, and how batches are combined.

Source: Kafka's ShareGroupOffset and PersisterStateBatchCombiner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .operations import NO_COMPLETE_COUNT, UNINITIALIZED_OFFSET, StateBatch


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
        batches: Iterable[StateBatch],
    ) -> ShareState:
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
            batches=combine(self.batches, batches, start),
        )


def combine(
    before: Iterable[StateBatch], updates: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Batches put together in order, as few as can be; in which order they came does not matter.

    Of each record that counts what was said of its latest delivery, and of one delivery that it is
    done with (PersisterStateBatchCombiner.compareBatchDeliveryInfo).

    Args:
        before: none over another.
        updates: of the same records, or others.
        start_offset: what is before it is left out.
    """
    result = list(before)
    for update in updates:
        if update.last_offset < update.first_offset:
            continue
        if not result or result[-1].last_offset < update.first_offset:
            result.append(update)
            continue
        kept: list[StateBatch] = []
        pieces = [update]
        for batch in result:
            if _rank(batch) > _rank(update):
                kept.append(batch)
                pieces = [left for piece in pieces for left in _without(piece, batch)]
            else:
                kept += _without(batch, update)
        result = sorted(kept + pieces)
    return tuple(_merged(result, start_offset))


def _rank(batch: StateBatch) -> tuple[int, int]:
    """What counts more; the numbers of states in which a record is done with are the higher."""
    return batch.delivery_count, batch.delivery_state


def _without(batch: StateBatch, other: StateBatch) -> Iterator[StateBatch]:
    """What is left of a batch beside another."""
    if batch.last_offset < other.first_offset or other.last_offset < batch.first_offset:
        yield batch
        return
    if batch.first_offset < other.first_offset:
        yield batch._replace(last_offset=other.first_offset - 1)
    if batch.last_offset > other.last_offset:
        yield batch._replace(first_offset=other.last_offset + 1)


def _merged(batches: Iterable[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    """Neighbours of one state and count as one, without what is before the start."""
    last: StateBatch | None = None
    for each in batches:
        if each.last_offset < start_offset:
            continue
        batch = each._replace(first_offset=max(each.first_offset, start_offset))
        if last is None:
            last = batch
        elif last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
            last = last._replace(last_offset=batch.last_offset)
        else:
            yield last
            last = batch
    if last is not None:
        yield last
