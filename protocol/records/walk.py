"""The walk from record to record over a batch, which makes none of them.

Compressed batches are decompressed piece by piece, and only the record at the end of a piece is
kept until the next; of one larger than a piece no more than its beginning. So a walk takes as much
memory for a batch of a gigabyte as for one of a megabyte. Uncompressed batches are read where
they lie; nothing of them is copied.

`iter_runs` serves whatever reads records (`records`, `validation`, the log cleaner): it hands out
bounds of many records at a time, since the walk itself costs a tenth of a microsecond a record,
and a generator that yields each of them as much again. `lengths_add_up` serves Produce, which
looks at the lengths alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from ...common.errors import ErrorCode, KafkaError
from ..compression.codecs import DECOMPRESSED_BYTES_MAX, Compression
from ..compression.decompression import iter_decompressed
from ..varints import Buffer, read_zigzag_varint
from .batch import RecordBatch

RECORD_BYTES_MIN = 6
"""Attributes, two deltas, two lengths and a count of headers, one byte each at least."""

HEAD_BYTES_MAX = 32
"""A record's length, attributes, deltas and the length of its key take no more."""

BOUNDS_RECORDS_MAX = 1024
LENGTH_BYTES_MAX = 5

ALIKE_RECORDS_MIN = 6
"""Comparing the lengths of so many costs less than skipping them one by one."""

ALIKE_RECORDS = 64
"""So many are compared at first, and twice as many each time that most were alike."""

RECORDS_APART = 16
"""So many are skipped one by one where few were alike, and twice as many each time, so that
comparisons that find nothing stay a small part."""

Run = tuple[Buffer, list[int]]
"""Bytes, and in them the beginning of each record (its attributes) and where it ends, in turn.
The end of the last may lie beyond the bytes, which then hold what is needed."""


class Need(IntEnum):
    """How much of a record must lie in a run's bytes."""

    HEAD = 0
    """Up to the length of its key."""
    KEY = 1
    """Up to the length of its value."""
    WHOLE = 2


def iter_runs(
    batch: RecordBatch, need: Need, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Run]:
    """The batch's records, some hundreds at a time, with as much of each as is needed.

    That they fill the batch, and are as many as its header says, is known at the end.

    Args:
        batch: a whole one.
        need: how much of a record is looked at.
        max_bytes: the most the records may decompress to.

    Raises:
        KafkaError: CORRUPT_MESSAGE, it does not decompress, or the records do not fit.
    """
    section: Buffer = batch.records_section()
    pieces = iter_decompressed(batch.compression, section, max_bytes)
    try:
        yield from _runs(pieces, batch.records_count, need, batch.compression is Compression.NONE)
    except IndexError as error:
        raise _corrupt("a record that cannot be decoded") from error


def lengths_add_up(buffer: Buffer, position: int, end: int, count: int) -> bool:
    """Whether exactly `count` uncompressed records fill the bytes from `position` to `end`.

    Goes from length to length and looks at nothing else. Producers often send records of one
    size: where the next one's length begins as this one's does, those of many to come are
    compared all at once.
    """
    compared_max = ALIKE_RECORDS
    apart = RECORDS_APART
    try:
        while count > ALIKE_RECORDS_MIN:
            start = position
            position, missing = _skip(buffer, start, end, 1)
            if missing:
                return False
            count -= 1
            stride = position - start
            compared = (end - position) // stride
            if compared > count:
                compared = count
            if compared > compared_max:
                compared = compared_max
            if compared >= ALIKE_RECORDS_MIN and buffer[position] == buffer[start]:
                alike = _count_alike(buffer, start, stride, compared)
                position += alike * stride
                count -= alike
                if 4 * alike >= compared:
                    compared_max *= 2
                    continue
            skipped = count if count < apart else apart
            position, missing = _skip(buffer, position, end, skipped)
            if missing:
                return False
            count -= skipped
            apart *= 2
        position, missing = _skip(buffer, position, end, count)
        return position == end and not missing
    except (IndexError, KafkaError):
        return False


def _count_alike(buffer: Buffer, start: int, stride: int, count: int) -> int:
    """How many of the next `count` records are as long as the one at `start`, up to the first
    that is not; none where the length takes more than two bytes.

    While they are, their lengths lie `stride` bytes from each other, and each one proves
    where the next lies: the bytes at those places are the lengths, and are compared together.

    Args:
        buffer: holds the records.
        start: where the known record begins.
        stride: what it takes, its length included.
        count: of records behind it, were they all as long; they lie before the end.
    """
    length_bytes = 1 if buffer[start] < 0x80 else 2
    if length_bytes == 2 and buffer[start + 1] >= 0x80:
        return 0
    stop = start + count * stride
    following = start + stride
    behind = stop + stride
    if buffer[following:behind:stride] == buffer[start:stop:stride] and (
        length_bytes == 1
        or buffer[following + 1 : behind : stride] == buffer[start + 1 : stop : stride]
    ):
        return count
    for at in range(length_bytes):
        found = bytes(buffer[following + at : behind : stride])
        known = bytes(buffer[start + at : start + at + 1])
        count = min(count, len(found) - len(found.lstrip(known)))
    return count


def _runs(pieces: Iterator[Buffer], count: int, need: Need, is_last: bool) -> Iterator[Run]:
    """Runs over pieces; of an uncompressed batch, the first piece is the last."""
    kept = bytearray()
    needed = skipped = 0
    for piece in pieces:
        if skipped >= len(piece):
            skipped -= len(piece)
            continue
        data, position = piece, skipped
        skipped = 0
        if kept:
            kept += piece
            if len(kept) < needed:
                continue
            data, kept = kept, bytearray()
        end = len(data)
        while count > 0:
            bounds: list[int] = []
            position, _ = _skip(data, position, end, min(count, BOUNDS_RECORDS_MAX), bounds)
            if not bounds:
                break
            count -= len(bounds) >> 1
            yield data, bounds
        if position == end:
            continue
        if count <= 0:
            raise _corrupt("more bytes than its records")
        if is_last:
            raise _corrupt("a record longer than the batch")
        start, stop, needed = _cut_off(data, position, end, need)
        if needed <= end:
            count -= 1
            skipped = stop - end
            yield data, [start, stop]
        else:
            needed -= position
            kept = bytearray(memoryview(data)[position:])
    if count > 0 or kept or skipped:
        raise _corrupt("fewer bytes than its records")


def _skip(
    data: Buffer, position: int, end: int, count: int, bounds: list[int] | None = None
) -> tuple[int, int]:
    """Go from record to record by their lengths: the walk that all others stand on.

    A few hundred nanoseconds a record, so it is written out for lengths of one and two bytes.

    Args:
        data: holds records.
        position: where the first one begins.
        end: where they end at the latest.
        count: how many records to skip at the most.
        bounds: takes the beginning of each (behind its length) and its end. Without it the last
            record may go beyond `end`: that is looked at only before the next, to save time.

    Returns:
        The position after the last one, and how many of `count` are missing.

    Raises:
        KafkaError: CORRUPT_MESSAGE, a length is one that no record has.
    """
    shortest = RECORD_BYTES_MIN << 1
    missing = count
    try:
        for missing in range(count, 0, -1):
            if position >= end:
                return position, missing
            length = data[position]
            start = position + 1
            if length >= 0x80:
                byte = data[start]
                start += 1
                length = length & 0x7F | (byte & 0x7F) << 7
                shift = 14
                while byte >= 0x80:
                    if shift > 7 * (LENGTH_BYTES_MAX - 1):
                        raise _corrupt("a record of an endless length")
                    byte = data[start]
                    start += 1
                    length |= (byte & 0x7F) << shift
                    shift += 7
            if length & 1 or length < shortest:  # negative, or too short for any record
                raise _corrupt("a record of an impossible length")
            if bounds is None:
                position = start + (length >> 1)
                continue
            stop = start + (length >> 1)
            if stop > end:
                return position, missing
            bounds.append(start)
            bounds.append(stop)
            position = stop
    except IndexError:  # The data ends within a length.
        return position, missing
    return position, 0


def _cut_off(data: Buffer, position: int, end: int, need: Need) -> tuple[int, int, int]:
    """Where a record that is not whole begins and ends, and up to where it is needed."""
    if end - position < HEAD_BYTES_MAX:
        return 0, 0, end + 1
    length, start = read_zigzag_varint(data, position)
    stop = start + length
    if need is Need.WHOLE:
        return start, stop, stop
    if need is Need.HEAD:
        return start, stop, end
    _, field = read_zigzag_varint(data, start + 1)
    _, field = read_zigzag_varint(data, field)
    key_length, field = read_zigzag_varint(data, field)
    return start, stop, min(stop, field + max(key_length, 0) + LENGTH_BYTES_MAX)


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch holds {what}")
