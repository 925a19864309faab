"""Looking at an index entry against the batches before anything is made of it.

An index is a hint: wherever it says to begin, the batches that lie there say what they are.
An entry read from a file is used only after the batch it names was found where it says;
otherwise the index files are made again from the batches, and the lookup goes on. So a
flipped bit in an index costs time, never a wrong answer.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX
from ...protocol.records.batch import RecordBatch
from ..errors import CorruptIndexError
from ..segment.segment_reader import iter_headers, iter_valid_batches
from .index_file import IndexFile
from .time_index import TimestampAndOffset
from .transaction_index import AbortedTxn

if TYPE_CHECKING:
    from ..segment.log_segment import LogSegment

logger = logging.getLogger(__name__)

REACH_MAX = 2**31 - 1
"""No offset of a segment lies further from its base: the indexes hold 32 bits."""


def start_position(segment: LogSegment, offset: int) -> int:
    """Where in a segment to begin looking for an offset: at a batch that does not lie after it.

    Raises:
        OSError: the disk fails.
    """
    index = segment.offset_index
    try:
        slot = index.slot_of(offset)
        if slot < 0:
            return 0
        noted, position = index.entry(slot)
        if index.is_trusted or _has_batch(segment, position, noted):
            return position
        problem = f"{index.path} has offset {noted} at {position}, where it is not"
    except CorruptIndexError as error:
        problem = str(error)
    if rebuild_indexes(segment, problem):
        return index.lookup(offset)
    return _position_before(segment, index.slot_of(offset))


def _position_before(segment: LogSegment, slot: int) -> int:
    """Of the last entry up to a slot that names a batch: others name what is damaged."""
    while slot >= 0:
        noted, position = segment.offset_index.entry(slot)
        if _has_batch(segment, position, noted):
            return position
        slot -= 1
    return 0


def last_start_position(segment: LogSegment) -> int:
    """The position of the last batch that the index knows."""
    return start_position(segment, INT64_MAX)


def noted_timestamp(segment: LogSegment, timestamp: int) -> TimestampAndOffset:
    """The time index's last entry not above `timestamp`, or timestamp -1 at the base offset.

    Raises:
        OSError: the disk fails.
    """
    index = segment.time_index
    try:
        noted = index.lookup(timestamp)
        if index.is_trusted or _has_timestamp(segment, noted):
            return noted
        problem = f"{index.path} has time {noted.timestamp} at offset {noted.offset}, not so"
    except CorruptIndexError as error:
        problem = str(error)
    rebuild_indexes(segment, problem)
    return index.lookup(timestamp)


def latest_timestamp(segment: LogSegment) -> TimestampAndOffset:
    """The latest timestamp of a segment, with the last offset of the batch that has it first.

    The time index knows it up to its last entry; the batches after the last entry of the
    offset index are asked, since the entry that closes a segment may not have reached the disk.

    Raises:
        OSError: the disk fails.
    """
    latest = noted_timestamp(segment, INT64_MAX)
    start = last_start_position(segment)
    with suppress(KafkaError):  # behind something that is no batch nothing can be known
        for _, batch in iter_headers(segment.open_file(), start, segment.size):
            if batch.max_timestamp > latest.timestamp:
                latest = TimestampAndOffset(batch.max_timestamp, batch.last_offset)
    return latest


def glance_at_latest_timestamp(segment: LogSegment) -> TimestampAndOffset | None:
    """The same from the last entry of each index alone, which tells it of nearly all segments.

    A log may have thousands, and the first lookup by time asks each: their indexes are not to
    be in memory after that.

    Returns:
        None where an entry does not agree with the last batches, or names one before them.

    Raises:
        OSError: the disk fails.
    """
    start = segment.offset_index.glance_at_last_entry()
    noted = segment.time_index.glance_at_last_entry()
    if start is None or noted is None:
        return None
    start_offset, position = start
    if not 0 <= position < segment.size:
        return None
    latest = noted
    is_named = position > 0
    is_right = False
    with suppress(KafkaError):
        for _, batch in iter_headers(segment.open_file(), position, segment.size):
            if is_named and batch.last_offset != start_offset:
                return None
            is_named = False
            if batch.base_offset <= noted.offset <= batch.last_offset:
                is_right = batch.max_timestamp == noted.timestamp
            if batch.max_timestamp > latest.timestamp:
                latest = TimestampAndOffset(batch.max_timestamp, batch.last_offset)
    return latest if is_right else None


def rebuild_indexes(segment: LogSegment, problem: str) -> bool:
    """Make the offset and time index of a segment again, by reading all its batches.

    If the disk takes no files, the entries are right in memory all the same.

    Args:
        segment: its batches are left as they are.
        problem: why, for the broker's log.

    Returns:
        Whether that was possible. If the batches themselves are damaged, what the index says
        of those behind the damage is all there is to find them by, and it stays.

    Raises:
        OSError: the disk cannot be read.
    """
    offset_index, time_index = segment.offset_index, segment.time_index
    if offset_index.is_all_there_is:
        return False
    entries = _entries_of(segment)
    if not entries.is_whole and _is_usable(offset_index) and _is_usable(time_index):
        logger.error("%s, but %s is damaged too", problem, segment.log_path)
        offset_index.is_all_there_is = True
        return False
    logger.warning("%s; the indexes of %s are made again", problem, segment.log_path)
    offset_index.reset()
    time_index.reset()
    for offset, position, latest in entries.noted:
        offset_index.append(offset, position)
        time_index.maybe_append(latest.timestamp, latest.offset)
    if entries.latest.timestamp >= 0:
        time_index.maybe_append(entries.latest.timestamp, entries.latest.offset)
    try:
        offset_index.replace_file()
        time_index.replace_file()
    except OSError as error:
        logger.warning("cannot write the indexes of %s: %s", segment.log_path, error)
    return True


class _Entries(NamedTuple):
    """What the indexes of a segment are to hold."""

    noted: list[tuple[int, int, TimestampAndOffset]]
    """Last offset of a batch, its position, and the latest timestamp up to it."""
    latest: TimestampAndOffset
    is_whole: bool
    """Whether there are batches, in order, up to the segment's end."""


def _entries_of(segment: LogSegment) -> _Entries:
    noted: list[tuple[int, int, TimestampAndOffset]] = []
    latest = TimestampAndOffset(-1, segment.base_offset)
    next_offset = segment.base_offset
    end = bytes_since_entry = 0
    for position, batch in iter_valid_batches(segment.open_file(), segment.size):
        reach = batch.last_offset - segment.base_offset
        if batch.base_offset < next_offset or reach > REACH_MAX:
            break
        if batch.max_timestamp > latest.timestamp:
            latest = TimestampAndOffset(batch.max_timestamp, batch.last_offset)
        if bytes_since_entry > segment.index_interval_bytes:
            noted.append((batch.last_offset, position, latest))
            bytes_since_entry = 0
        bytes_since_entry += batch.size_in_bytes
        next_offset = batch.next_offset
        end = position + batch.size_in_bytes
    return _Entries(noted, latest, end == segment.size)


def _is_usable(index: IndexFile) -> bool:
    try:
        return len(index.entries) > 0
    except CorruptIndexError:
        return False


def check_transaction_index(segments: Sequence[LogSegment], index: int) -> None:
    """Look for the marker and the first batch of each aborted transaction noted in a segment.

    Args:
        segments: of the log, in order.
        index: of the segment.

    Raises:
        CorruptIndexError: an entry names another producer's, or none.
        OSError: the disk fails.
    """
    segment = segments[index]
    try:
        for aborted in segment.transaction_index.read_all():
            begun_in = index
            while begun_in and segments[begun_in].base_offset > aborted.first_offset:
                begun_in -= 1
            first = _batch_at(segments[begun_in], aborted.first_offset)
            if not _ends(aborted, _batch_at(segment, aborted.last_offset)) or not _begins(
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


def _batch_at(segment: LogSegment, offset: int) -> RecordBatch | None:
    """The header of the first batch that ends at `offset` or later."""
    start = start_position(segment, offset)
    for _, batch in iter_headers(segment.open_file(), start, segment.size):
        if batch.last_offset >= offset:
            return batch
    return None


def _has_batch(segment: LogSegment, position: int, offset: int) -> bool:
    """Whether a batch begins there with which, or soon after which, `offset` ends.

    Kafka's entries name the last offset of what was appended at once, which may be several
    batches.
    """
    if not 0 <= position < segment.size:
        return False
    next_offset = segment.base_offset
    with suppress(KafkaError):
        for _, batch in iter_headers(segment.open_file(), position, segment.size):
            if not next_offset <= batch.base_offset <= offset:
                return False
            if batch.last_offset >= offset:
                return batch.last_offset == offset
            next_offset = batch.next_offset
    return False


def _has_timestamp(segment: LogSegment, noted: TimestampAndOffset) -> bool:
    """Whether the batch that holds the offset has that latest timestamp."""
    if noted.timestamp < 0:
        return noted.offset == segment.base_offset
    start = start_position(segment, noted.offset)
    with suppress(KafkaError):
        for _, batch in iter_headers(segment.open_file(), start, segment.size):
            if batch.last_offset >= noted.offset:
                return batch.base_offset <= noted.offset and (
                    batch.max_timestamp == noted.timestamp
                )
    return False
