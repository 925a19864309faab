"""Comparing transaction indexes with the batches when a log is loaded."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX
from ...protocol.records.batch import RecordBatch
from ..errors import CorruptIndexError
from ..index.transaction_index import AbortedTxn
from ..segment.log_segment import LogSegment

logger = logging.getLogger(__name__)


def find_corrupt_transaction_indexes(segments: Sequence[LogSegment]) -> set[int]:
    """The base offsets of segments whose transaction index is not what was written."""
    corrupt = set()
    for index, segment in enumerate(segments):
        if segment.has_transaction_index:
            is_last = index + 1 == len(segments)
            end_offset = INT64_MAX if is_last else segments[index + 1].base_offset
            try:
                segment.transaction_index.sanity_check(end_offset)
                _check(segments, index)
            except CorruptIndexError as error:
                logger.warning("transaction index is corrupt, rebuilding it: %s", error)
                corrupt.add(segment.base_offset)
    return corrupt


def find_lost_transaction_indexes(segments: Sequence[LogSegment], noted_count: int) -> set[int]:
    """The base offsets of segments whose transaction index may be gone, or a part of it.

    Args:
        segments: of a log that was closed properly.
        noted_count: how many aborted transactions all its indexes named then.
    """
    if not noted_count:
        return set()
    found_count = sum(
        len(each.transaction_index) for each in segments if each.has_transaction_index
    )
    if found_count >= noted_count:
        return set()
    logger.warning(
        "%d aborted transactions are named by the transaction indexes in %s, %d were noted: "
        "rebuilding them",
        found_count,
        segments[0].directory if segments else "an empty log",
        noted_count,
    )
    return {each.base_offset for each in segments}


def _check(segments: Sequence[LogSegment], index: int) -> None:
    """Look for the marker and the first batch of each aborted transaction noted in a segment.

    Args:
        segments: of the log, in order.
        index: of the segment.

    Raises:
        CorruptIndexError: an entry names another producer's, or none.
    """
    segment = segments[index]
    try:
        for aborted in segment.transaction_index.read_all():
            begun_in = index
            while begun_in and segments[begun_in].base_offset > aborted.first_offset:
                begun_in -= 1
            first = segments[begun_in].header_at(aborted.first_offset)
            if not _ends(aborted, segment.header_at(aborted.last_offset)) or not _begins(
                aborted, first
            ):
                raise CorruptIndexError(
                    f"{segment.transaction_index.path} has {aborted}, which the batches do not"
                )
    except KafkaError:
        return  # something in the log is no batch: there is nothing to compare with


def _ends(aborted: AbortedTxn, marker: RecordBatch | None) -> bool:
    return (
        marker is not None
        and marker.is_control
        and marker.base_offset == aborted.last_offset
        and marker.producer_id == aborted.producer_id
        and aborted.last_stable_offset <= marker.next_offset
    )


def _begins(aborted: AbortedTxn, batch: RecordBatch | None) -> bool:
    """Also if the batch is gone: the log may have been compacted, or begin later."""
    if batch is None or not batch.base_offset <= aborted.first_offset <= batch.last_offset:
        return True
    return (
        batch.base_offset == aborted.first_offset
        and batch.producer_id == aborted.producer_id
        and batch.is_transactional
        and not batch.is_control
    )
