"""Walking over a batch's records without making them: what lies at their beginning is read.

Compressed batches are unfolded piece by piece, and only the record at the end of a piece is kept
until the next; of one larger than a piece no more than its beginning. So a walk takes as much
memory for a batch of a gigabyte as for one of a megabyte. Uncompressed batches are read where
they lie; nothing of them is copied.

`iter_offsets_and_timestamps` serves lookups by time, `iter_keys` compaction, and
`iter_runs` whoever has a loop of its own: the walk itself costs a tenth of a microsecond a
record, and a generator that hands out each of them as much again.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from ...common.errors import ErrorCode, KafkaError
from ..codec.varints import Buffer
from ..compression.codecs import DECOMPRESSED_BYTES_MAX, Compression
from ..compression.decompression import iter_decompressed
from .batch import RecordBatch
from .varint import read_raw_varint, read_varint

RECORD_BYTES_MIN = 6
"""Attributes, two deltas, two lengths and a count of headers, one byte each at least."""

HEAD_BYTES_MAX = 32
"""A record's length, attributes, deltas and the length of its key take no more."""

RUN_RECORDS = 1024
LENGTH_BYTES_MAX = 5

Run = tuple[Buffer, list[int]]
"""Bytes, and in them the beginning of each record (its attributes) and where it ends, in turn.
The end of the last may lie beyond the bytes, which then hold what was asked for."""


class Need(IntEnum):
    """How much of a record must lie in a run's bytes."""

    HEAD = 0
    """Up to the length of its key."""
    KEY = 1
    """Up to the length of its value."""
    WHOLE = 2


def iter_offsets_and_timestamps(
    batch: RecordBatch, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[tuple[int, int]]:
    """The offset of each record and its timestamp, in ms since the epoch.

    Args:
        batch: a whole one; its checksum is not looked at.
        max_bytes: the most the records may unfold to when decompressed.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the records do not fit the batch or its header; those
            before what does not fit have come already.
    """
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    fixed_timestamp = batch.max_timestamp if batch.uses_log_append_time else None
    try:
        for data, bounds in iter_runs(batch, Need.HEAD, max_bytes):
            for position in bounds[::2]:
                raw = data[position + 1]
                if raw < 0x80:
                    position += 2
                elif data[position + 2] < 0x80:
                    raw = raw & 0x7F | data[position + 2] << 7
                    position += 3
                else:
                    raw, position = read_raw_varint(data, position + 1)
                timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
                raw = data[position]
                if raw >= 0x80:
                    byte = data[position + 1]
                    if byte < 0x80:
                        raw = raw & 0x7F | byte << 7
                    else:
                        raw, _ = read_raw_varint(data, position)
                offset = base_offset + (raw >> 1 ^ -(raw & 1))
                yield offset, timestamp if fixed_timestamp is None else fixed_timestamp
    except IndexError as error:
        raise _corrupt("a record that cannot be decoded") from error


def iter_keys(
    batch: RecordBatch, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[tuple[int, int, memoryview | None, bool]]:
    """Of each record: its offset as a delta to the batch's base offset, its timestamp in ms
    since the epoch, a view of its key (None where it has none), and whether its value is null.

    Args:
        batch: a whole one; its checksum is not looked at. Views of an uncompressed batch's keys
            are of its buffer.
        max_bytes: the most the records may unfold to when decompressed.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the records do not fit the batch or its header; those
            before what does not fit have come already.
    """
    base_timestamp = batch.base_timestamp
    fixed_timestamp = batch.max_timestamp if batch.uses_log_append_time else None
    try:
        for data, bounds in iter_runs(batch, Need.KEY, max_bytes):
            view = memoryview(data)
            for index in range(0, len(bounds), 2):
                position = bounds[index]
                raw = data[position + 1]
                if raw < 0x80:
                    position += 2
                else:
                    raw, position = read_raw_varint(data, position + 1)
                timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
                offset_delta = data[position]
                if offset_delta < 0x80:
                    position += 1
                else:
                    offset_delta, position = read_raw_varint(data, position)
                length = data[position]
                if length < 0x80:
                    position += 1
                else:
                    length, position = read_raw_varint(data, position)
                key = None
                if not length & 1:
                    key_end = position + (length >> 1)
                    key = view[position:key_end]
                    position = key_end
                if position >= bounds[index + 1]:
                    raise _corrupt("a key longer than its record")
                yield (
                    offset_delta >> 1 ^ -(offset_delta & 1),
                    timestamp if fixed_timestamp is None else fixed_timestamp,
                    key,
                    data[position] & 1 == 1,  # Zigzag: a length below zero is odd.
                )
    except IndexError as error:
        raise _corrupt("a record that cannot be decoded") from error


def iter_runs(
    batch: RecordBatch, need: Need, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Run]:
    """The batch's records, some hundreds at a time, with as much of each as is needed.

    That they fill the batch, and are as many as its header says, is known at the end.

    Args:
        batch: a whole one.
        need: how much of a record is looked at.
        max_bytes: the most the records may unfold to when decompressed.

    Raises:
        KafkaError: CORRUPT_MESSAGE, it does not decompress, or the records do not fit.
    """
    section: Buffer = batch.records_section()
    pieces = iter_decompressed(batch.compression, section, max_bytes)
    try:
        yield from _runs(pieces, batch.records_count, need, batch.compression is Compression.NONE)
    except IndexError as error:
        raise _corrupt("a record that cannot be decoded") from error


def _runs(pieces: Iterator[Buffer], count: int, need: Need, is_last: bool) -> Iterator[Run]:
    """Runs over pieces; of an uncompressed batch, the first piece is the last."""
    kept = bytearray()
    wanted = skipped = 0
    for piece in pieces:
        if skipped >= len(piece):
            skipped -= len(piece)
            continue
        data, position = piece, skipped
        skipped = 0
        if kept:
            kept += piece
            if len(kept) < wanted:
                continue
            data, kept = kept, bytearray()
        end = len(data)
        while count > 0:
            bounds: list[int] = []
            position = _hop(data, position, end, min(count, RUN_RECORDS), bounds)
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
        start, stop, wanted = _cut_off(data, position, end, need)
        if wanted <= end:
            count -= 1
            skipped = stop - end
            yield data, [start, stop]
        else:
            wanted -= position
            kept = bytearray(memoryview(data)[position:])
    if count > 0 or kept or skipped:
        raise _corrupt("fewer bytes than its records")


def _hop(data: Buffer, position: int, end: int, count: int, bounds: list[int]) -> int:
    """Note up to `count` records that are whole; gives the position after the last of them.

    Written out for lengths of one and two bytes, as `validation.records_tile` is.
    """
    shortest = RECORD_BYTES_MIN << 1
    note = bounds.append
    try:
        for _ in range(count):
            if position >= end:
                break
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
            stop = start + (length >> 1)
            if stop > end:
                break
            note(start)
            note(stop)
            position = stop
    except IndexError:  # The piece ends within a length.
        pass
    return position


def _cut_off(data: Buffer, position: int, end: int, need: Need) -> tuple[int, int, int]:
    """Where a record that is not whole begins and ends, and up to where it is needed."""
    if end - position < HEAD_BYTES_MAX:
        return 0, 0, end + 1
    length, start = read_varint(data, position)
    stop = start + length
    if need is Need.WHOLE:
        return start, stop, stop
    if need is Need.HEAD:
        return start, stop, end
    _, field = read_varint(data, start + 1)
    _, field = read_varint(data, field)
    key_length, field = read_varint(data, field)
    return start, stop, min(stop, field + max(key_length, 0) + LENGTH_BYTES_MAX)


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch holds {what}")
