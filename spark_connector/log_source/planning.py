"""The slices that the driver cuts logs into."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ...common.sentinels import INT64_MAX
from ..errors import SparkConnectorError
from ..kafka_source.filters import PushedFilters
from .folders import PartitionLog, partition_logs
from .options import HIGH_WATERMARK, LogOptions
from .segment_range import cut_positions, is_too_early
from .slices import LogSlice
from .transactions import Transactions, transactions_of

EVERYTHING = Transactions((), INT64_MAX)


def planned_slices(options: LogOptions, filters: PushedFilters) -> list[LogSlice]:
    """What the tasks read.

    Raises:
        SparkConnectorError: a folder cannot be read, or does not have what is requested.
    """
    slices: list[LogSlice] = []
    for log in partition_logs(options):
        if not filters.covers(log.topic, log.partition):
            continue
        try:
            slices += _slices_of(log, options, filters)
        except OSError as error:
            raise SparkConnectorError(f"{log.path} cannot be read: {error}") from None
    return slices


def _slices_of(
    log: PartitionLog, options: LogOptions, filters: PushedFilters
) -> Iterator[LogSlice]:
    transactions = EVERYTHING
    if options.reads_committed and options.table == "records":
        transactions = transactions_of(log)
    first = max(_first_offset(log, options), filters.first_offset)
    until = min(_until_offset(log, options), filters.until_offset, transactions.last_stable_offset)
    start_ms = max(options.start_ms, filters.timestamp_ms or options.start_ms)
    for segment in log.segments:
        following = segment.next_base_offset
        if segment.base_offset >= until or (following is not None and following <= first):
            continue
        if options.table == "indexes":
            yield _slice(log, segment.path, segment.base_offset, 0, segment.size)
            continue
        if segment.size == 0:
            continue
        cuts = [0, segment.size]
        if options.uses_indexes:
            if is_too_early(segment, start_ms):
                continue
            cuts = cut_positions(segment, first, until, start_ms, options.slice_bytes)
        aborted = tuple(
            each
            for each in transactions.aborted
            if each[2] > segment.base_offset and (following is None or each[1] < following)
        )
        for start, end in pairwise(cuts):
            piece = _slice(log, segment.path, segment.base_offset, start, end)
            piece.is_tail = segment.is_last and end == segment.size
            piece.first_offset = first
            piece.until_offset = until
            piece.aborted = aborted
            yield piece


def _slice(log: PartitionLog, path: str, base_offset: int, start: int, end: int) -> LogSlice:
    return LogSlice(
        log.folder,
        path,
        log.topic,
        log.partition,
        base_offset,
        start,
        end,
        is_tail=False,
        first_offset=0,
        until_offset=INT64_MAX,
    )


def _first_offset(log: PartitionLog, options: LogOptions) -> int:
    if options.start.word is not None:
        return log.log_start_offset
    if options.start.offsets is None:
        return options.start.everywhere
    offset = options.start.offsets.get((log.topic, log.partition), -1)
    return log.log_start_offset if offset < 0 else offset


def _until_offset(log: PartitionLog, options: LogOptions) -> int:
    if options.end.word == HIGH_WATERMARK:
        if log.high_watermark is None:
            raise SparkConnectorError(
                f"option 'endingOffsets': no high watermark of {log.topic}-{log.partition} is"
                f" written down in {log.folder}"
            )
        return log.high_watermark
    if options.end.word is not None:
        return INT64_MAX
    if options.end.offsets is None:
        return options.end.everywhere
    offset = options.end.offsets.get((log.topic, log.partition), -1)
    return INT64_MAX if offset < 0 else offset
