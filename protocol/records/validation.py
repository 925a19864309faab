"""What a broker checks of a batch without decoding its records."""

from __future__ import annotations

from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_TIMESTAMP
from ..compression.codecs import DECOMPRESSED_BYTES_MAX
from .batch import BATCH_HEADER_BYTES, CRC_COVERS_FROM, LOG_OVERHEAD_BYTES, Buffer, RecordBatch
from .crc import crc32c
from .light_records import RECORD_BYTES_MIN, Need, iter_runs
from .varint import read_raw_varint

LENGTH_BYTES_MAX = 5

RUN_RECORDS_MIN = 6
"""Comparing the lengths of so many costs less than hopping over them."""

RUN_RECORDS = 64
"""So many are compared at first, and twice as many each time that most were alike."""

RECORDS_APART = 16
"""So many are hopped over where few were alike, and twice as many each time: what is compared in
vain stays a small part."""

UNFOLDED_BYTES_AT_LEAST = 16 << 20
UNFOLDED_BYTES_PER_BYTE = 64
RECORDS_AT_LEAST = 50_000
NAMED_RECORDS_MAX = 10_000
"""Of more records than these a summary does not keep the positions."""


def has_valid_crc(batch: RecordBatch) -> bool:
    """Whether the batch is whole and its checksum is the stored one."""
    size = batch.size_in_bytes
    view = memoryview(batch.buffer)
    if size < BATCH_HEADER_BYTES or batch.position + size > len(view):
        return False
    start = batch.position + CRC_COVERS_FROM
    checksum: int = crc32c(view[start : batch.position + size])
    return checksum == batch.crc


def require_valid_crc(batch: RecordBatch) -> None:
    """Refuse a batch whose bytes are not those that were sent.

    Raises:
        KafkaError: CORRUPT_MESSAGE.
    """
    if not has_valid_crc(batch):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the record batch at offset {batch.base_offset} fails its checksum",
        )


def records_tile(buffer: Buffer, position: int, end: int, count: int) -> bool:
    """Whether exactly `count` uncompressed records fill the bytes from `position` to `end`.

    Hops from length to length and looks at nothing else. Producers often send records of one
    size: where the next one's length begins as this one's does, those of many to come are
    compared all at once.
    """
    run_max = RUN_RECORDS
    apart = RECORDS_APART
    try:
        while count > RUN_RECORDS_MIN:
            start = position
            position = _hop(buffer, start, end, 1)
            count -= 1
            stride = position - start
            run = (end - position) // stride
            if run > count:
                run = count
            if run > run_max:
                run = run_max
            if run >= RUN_RECORDS_MIN and buffer[position] == buffer[start]:
                alike = _count_alike(buffer, start, stride, run)
                position += alike * stride
                count -= alike
                if 4 * alike >= run:
                    run_max *= 2
                    continue
            hops = count if count < apart else apart
            position = _hop(buffer, position, end, hops)
            count -= hops
            apart *= 2
        return _hop(buffer, position, end, count) == end
    except IndexError:
        return False


def _hop(buffer: Buffer, position: int, end: int, count: int) -> int:
    """The position behind the next `count` records.

    A few hundred nanoseconds a record, so it is written out for lengths of one and two bytes.

    Raises:
        IndexError: they go beyond the end, or a length is one that no record has.
    """
    shortest = RECORD_BYTES_MIN << 1
    for _ in range(count):
        if position >= end:
            raise IndexError
        length = buffer[position]
        position += 1
        if length >= 0x80:
            byte = buffer[position]
            position += 1
            length = length & 0x7F | (byte & 0x7F) << 7
            shift = 14
            while byte >= 0x80:
                if shift > 7 * (LENGTH_BYTES_MAX - 1):
                    raise IndexError
                byte = buffer[position]
                position += 1
                length |= (byte & 0x7F) << shift
                shift += 7
        if length & 1 or length < shortest:  # negative, or too short for any record
            raise IndexError
        position += length >> 1
    return position


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


def unfolded_bytes_max(size: int) -> int:
    """To how many bytes a client's batch may unfold where it has to be opened.

    Kafka knows no such limit. Small batches unfold to much, rightly, if they hold little but
    zeros; without a limit their sender would spend our time a hundred thousand times as fast as
    theirs.
    """
    return min(UNFOLDED_BYTES_AT_LEAST + UNFOLDED_BYTES_PER_BYTE * size, DECOMPRESSED_BYTES_MAX)


def records_max(size: int) -> int:
    """How many records a client's batch of so many bytes may hold where each is looked at."""
    return RECORDS_AT_LEAST + size


class RecordsSummary(NamedTuple):
    """What one pass over the records tells that the header does not."""

    keyless: list[int]
    """The positions in the batch of the first records without a key."""
    out_of_range: list[int]
    """Of the first whose timestamp is too early or too late."""
    max_timestamp: int
    """In ms since the epoch; -1 if no record has one."""


def summarize_records(
    batch: RecordBatch,
    earliest_timestamp: int,
    latest_timestamp: int,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> RecordsSummary:
    """Look at each record's timestamp and key length, decompressing where needed.

    For topics whose settings ask about every record; those of others are never opened.

    Args:
        batch: a whole one.
        earliest_timestamp: in ms; a record without a timestamp (-1) is never too early.
        latest_timestamp: in ms.
        max_bytes: the most the records may unfold to when decompressed.

    Raises:
        KafkaError: INVALID_RECORD, it does not decompress, or the records do not fill it or
            are not as many as its header says.
    """
    keyless: list[int] = []
    out_of_range: list[int] = []
    max_timestamp = NO_TIMESTAMP
    base_timestamp = batch.base_timestamp
    index = -1
    try:
        for data, bounds in iter_runs(batch, Need.HEAD, max_bytes):
            for position in bounds[::2]:
                index += 1
                raw = data[position + 1]
                field = position + 2
                if raw >= 0x80:
                    if data[field] < 0x80:
                        raw = raw & 0x7F | data[field] << 7
                        field += 1
                    else:
                        raw, field = read_raw_varint(data, position + 1)
                timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
                while data[field] >= 0x80:  # The offset's delta is of no interest.
                    field += 1
                if data[field + 1] & 1 and len(keyless) < NAMED_RECORDS_MAX:
                    keyless.append(index)  # Zigzag: a length below zero is odd.
                if timestamp > max_timestamp:
                    max_timestamp = timestamp
                if (
                    timestamp != NO_TIMESTAMP
                    and not (earliest_timestamp <= timestamp <= latest_timestamp)
                    and len(out_of_range) < NAMED_RECORDS_MAX
                ):
                    out_of_range.append(index)
    except KafkaError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.message) from error
    except IndexError:
        raise _misfit(batch) from None
    return RecordsSummary(keyless, out_of_range, max_timestamp)


def _misfit(batch: RecordBatch) -> KafkaError:
    size = batch.batch_length + LOG_OVERHEAD_BYTES - BATCH_HEADER_BYTES
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"{batch.records_count} records do not fill the {size} bytes of their batch",
    )
