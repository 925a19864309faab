"""The records inside a batch, decoded one at a time when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..compression import DECOMPRESSED_BYTES_MAX, decompress
from ..errors import ErrorCode, KafkaError
from .batch import RecordBatch
from .varint import read_varint

RECORD_BYTES_MIN = 6
"""Attributes, two deltas, two lengths and a count of headers, one byte each at least."""


class Record(NamedTuple):
    """One record, as a consumer sees it."""

    offset: int
    timestamp: int
    """Milliseconds since the epoch, -1 where the producer gave none."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def iter_records(batch: RecordBatch, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    """Decompress a batch and decode its records lazily.

    The checksum is not looked at (see `validation.has_valid_crc`), but every length is
    held against what is there.

    Args:
        batch: keys and values are copied out of it, so it may go afterwards.
        max_bytes: the most the records may unfold to when decompressed.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the records do not fit the batch or its header.
    """
    data = decompress(batch.compression, batch.records_section(), max_bytes)
    position = 0
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    fixed_timestamp = batch.max_timestamp if batch.uses_log_append_time else None
    for _ in range(batch.records_count):
        try:
            length, start = read_varint(data, position)
            position = start + length
            if length < RECORD_BYTES_MIN or position > len(data):
                raise _corrupt("a record longer than the batch")
            record, end = _decode(data, start, base_offset, base_timestamp)
        except (IndexError, UnicodeDecodeError) as error:
            raise _corrupt("a record that cannot be decoded") from error
        if end != position:
            raise _corrupt("a record whose parts do not add up to its length")
        yield record if fixed_timestamp is None else record._replace(timestamp=fixed_timestamp)
    if position != len(data):
        raise _corrupt("more bytes than its records")


def _decode(data: bytes, start: int, base_offset: int, base_timestamp: int) -> tuple[Record, int]:
    """The record whose attributes lie at `start`, and where its last header ends."""
    timestamp_delta, position = read_varint(data, start + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _nullable_bytes(data, position)
    value, position = _nullable_bytes(data, position)
    count, position = read_varint(data, position)
    if count < 0:
        raise _corrupt("a negative number of headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _nullable_bytes(data, position)
        if name is None:
            raise _corrupt("a header without a name")
        header_value, position = _nullable_bytes(data, position)
        headers.append((name.decode("utf-8"), header_value))
    timestamp = base_timestamp + timestamp_delta
    return Record(base_offset + offset_delta, timestamp, key, value, headers), position


def _nullable_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(data):
        raise _corrupt("a field longer than its record")
    return data[position:end], end


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch holds {what}")
