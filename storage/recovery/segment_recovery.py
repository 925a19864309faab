"""Reading a segment through after a crash: what is whole stays, the rest is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...common.errors import KafkaError
from ..epoch.leader_epoch_cache import LeaderEpochCache
from ..index.index_check import rebuild_indexes
from ..segment.log_segment import OFFSETS_MAX, LogSegment
from ..segment.segment_reader import iter_headers, iter_valid_batches, read_batch
from .transaction_recovery import ProducerReplay


def recover_segment(
    segment: LogSegment,
    epochs: LeaderEpochCache,
    producers: ProducerReplay | None = None,
    *,
    before_cut: Callable[[], None] | None = None,
) -> int:
    """Rebuild a segment's indexes and cut off a torn or corrupt tail.

    Args:
        segment: its size and indexes are what the files say, not to be trusted.
        epochs: learns the leader epochs it does not know yet; the caller flushes it.
        producers: makes the transaction index; without it, it is left empty.
        before_cut: called when something is to be cut, before it is.

    Returns:
        How many bytes were cut.

    Raises:
        OSError: the disk fails.
    """
    if producers is not None:
        producers.begin(segment)
    file = segment.file
    end = file.size()
    segment.reset()
    next_offset = segment.base_offset
    for _, batch in iter_valid_batches(file, end):
        last_offset = batch.last_offset
        if batch.base_offset < next_offset or last_offset - segment.base_offset > OFFSETS_MAX:
            break
        epoch = batch.partition_leader_epoch
        if epoch > epochs.latest_epoch:
            epochs.note(epoch, batch.base_offset)
        found = (batch.base_offset, last_offset, batch.max_timestamp, batch.size_in_bytes, epoch)
        segment.published((found,))
        if producers is not None:
            producers.take(segment, batch)
        next_offset = last_offset + 1
    cut_bytes = end - segment.size
    if cut_bytes:
        if before_cut is not None:
            before_cut()
        segment.cut_file()
    segment.close_for_appends()
    if producers is not None:
        producers.end(segment, next_offset)
    return cut_bytes


def reindex_segment(segment: LogSegment, producers: ProducerReplay | None = None) -> None:
    """Make the indexes of a flushed segment again from its batches.

    Its batches are left alone, whatever is wrong with them: where something lies that is no
    batch the indexes end, and whoever reads there is told.

    Args:
        segment: its batches are on the disk, one of its indexes is missing or wrong.
        producers: makes the transaction index; without it, it is left as it is.

    Raises:
        OSError: the disk fails.
    """
    rebuild_indexes(segment, "an index is missing or damaged")
    if producers is None:
        return
    producers.begin(segment)
    segment.transaction_index.reset()
    next_offset = segment.base_offset
    try:
        for position, header in iter_headers(segment.file, 0, segment.size):
            batch = header
            if header.is_control:
                batch = read_batch(segment.file, position, header.size_in_bytes)
            producers.take(segment, batch)
            next_offset = batch.next_offset
    except KafkaError:
        pass  # the indexes end here, too
    segment.flush_indexes()
    producers.end(segment, next_offset)


def rebuild_epochs(
    segments: Iterable[LogSegment], epochs: LeaderEpochCache, log_start_offset: int
) -> None:
    """Read from all batches which leader epoch began where.

    Args:
        segments: of the log, in order.
        epochs: what it knows is forgotten, unless the batches tell of no epoch.
        log_start_offset: where the first epoch counts as begun.

    Raises:
        OSError: the disk fails.
    """
    is_first = True
    for segment in segments:
        try:
            for _, batch in iter_headers(segment.open_file(), 0, segment.size):
                epoch = batch.partition_leader_epoch
                if batch.last_offset < log_start_offset:
                    continue
                if is_first:
                    if epoch < 0:
                        return
                    epochs.clear()
                    is_first = False
                if epoch > epochs.latest_epoch:
                    epochs.note(epoch, max(batch.base_offset, log_start_offset))
        except KafkaError:
            continue  # something in it is no batch; the next segment may say more
