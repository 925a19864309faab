"""What the cleaner's thread is given: all it needs to know of a log, and nothing of the log.

The loop makes a plan, the thread reads files by it, and the loop applies the result if the
log still has those segments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...common.named_tuple import NamedTuple
from ..file_names import segment_path
from ..index.transaction_index import AbortedTxn
from ..io.files import Files
from ..log.log import Log
from ..producer_state.producer_state import ProducerState
from ..segment.log_segment import OFFSETS_MAX


class CleanerSettings(NamedTuple):
    """The broker's settings for one cleaner (Kafka's CleanerConfig, divided by the threads)."""

    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    dedupe_load_factor: float = 0.9
    io_buffer_bytes: int = 256 * 1024
    """Of each of the two buffers."""


class SourceSegment(NamedTuple):
    """One segment to be read."""

    base_offset: int
    end_offset: int
    """Where the next one begins."""
    size: int


class LastRecord(NamedTuple):
    """What must stay of an active producer for its state to be found in the log."""

    offset: int
    """Of the last record, or -1 if only its epoch is known, by a marker."""
    producer_epoch: int


class CleaningPlan(NamedTuple):
    """One round on one log, decided on by the loop."""

    files: Files
    directory: str
    name: str
    """Of the partition, for messages."""
    segments: tuple[SourceSegment, ...]
    """All below the first uncleanable offset, clean ones too."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes_max: int
    index_bytes_max: int
    index_interval_bytes: int
    aborted: tuple[AbortedTxn, ...]
    """Every aborted transaction that reaches into those segments."""
    last_records: Mapping[int, LastRecord]
    """Of active producers, by producer id."""
    settings: CleanerSettings


def plan_cleaning(
    files: Files,
    log: Log,
    first_dirty_offset: int,
    first_uncleanable_offset: int,
    now_ms: int,
    settings: CleanerSettings,
) -> CleaningPlan:
    """Note everything that a round needs.

    Args:
        files: the file system the log lies in.
        log: to be cleaned.
        first_dirty_offset: from here on nothing was cleaned yet.
        first_uncleanable_offset: where an inactive segment begins, or the active one.
        now_ms: the wall time.
        settings: of the cleaner.
    """
    config = log.config
    segments = tuple(
        SourceSegment(segment.base_offset, log.segments[index + 1].base_offset, segment.size)
        for index, segment in enumerate(log.segments)
        if segment.base_offset < first_uncleanable_offset
    )
    aborted: Sequence[AbortedTxn] = ()
    if segments:
        aborted = log.aborted_transactions(segments[0].base_offset, first_uncleanable_offset)
    return CleaningPlan(
        files,
        log.directory,
        str(log.topic_partition),
        segments,
        first_dirty_offset,
        first_uncleanable_offset,
        now_ms,
        config.delete_retention_ms,
        config.segment_bytes,
        config.segment_index_bytes,
        config.index_interval_bytes,
        tuple(aborted),
        {
            producer_id: _last_record(state)
            for producer_id, state in log.producers.published.items()
        },
        settings,
    )


def _last_record(state: ProducerState) -> LastRecord:
    return LastRecord(state.batches[-1].last_offset if state.batches else -1, state.producer_epoch)


def group_by_size(plan: CleaningPlan, end_offset: int) -> list[list[SourceSegment]]:
    """Neighbours that fit one segment together (Kafka's Cleaner.groupSegmentsBySize).

    They fit by the bytes of their files and by the reach of their offsets.

    Args:
        end_offset: segments that begin there or later are left alone.
    """
    groups: list[list[SourceSegment]] = []
    sizes = (0, 0, 0)
    for segment in plan.segments:
        if segment.base_offset >= end_offset:
            break
        own = (
            segment.size,
            _index_bytes(plan, segment, ".index"),
            _index_bytes(plan, segment, ".timeindex"),
        )
        total = (sizes[0] + own[0], sizes[1] + own[1], sizes[2] + own[2])
        if (
            groups
            and total[0] <= plan.segment_bytes_max
            and total[1] <= plan.index_bytes_max
            and total[2] <= plan.index_bytes_max
            and (
                segment.size == 0
                or segment.end_offset - 1 - groups[-1][0].base_offset <= OFFSETS_MAX
            )
        ):
            groups[-1].append(segment)
            sizes = total
        else:
            groups.append([segment])
            sizes = own
    return groups


def _index_bytes(plan: CleaningPlan, segment: SourceSegment, suffix: str) -> int:
    path = segment_path(plan.directory, segment.base_offset, suffix)
    return plan.files.size(path) if plan.files.exists(path) else 0
