"""The records inside a batch, decoded one at a time when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ..compression.codecs import DECOMPRESSED_BYTES_MAX
from ..varints import Buffer, read_raw_zigzag, read_zigzag_varint
from .batch import RecordBatch
from .walk import Need, iter_runs

HEADERS_MAX = 5000
HEADER_BYTES_MIN = 20
"""A record may have more headers than that many where there are so many bytes for each: of two
bytes is a header without name and value, and of a hundred and fifty what is made of it."""


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
        max_bytes: the most the records may decompress to.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the records do not fit the batch or its header.
    """
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    fixed_timestamp = batch.max_timestamp if batch.uses_log_append_time else None
    piece: Buffer = b""
    data = b""
    for run, bounds in iter_runs(batch, Need.WHOLE, max_bytes):
        if run is not piece:
            piece = run
            data = bytes(run)
        for index in range(0, len(bounds), 2):
            try:
                record, end = _decode(data, bounds[index], base_offset, base_timestamp)
            except (IndexError, UnicodeDecodeError) as error:
                raise _corrupt("a record that cannot be decoded") from error
            if end != bounds[index + 1]:
                raise _corrupt("a record whose parts do not add up to its length")
            yield record if fixed_timestamp is None else record._replace(timestamp=fixed_timestamp)


def read_values(
    batch: RecordBatch, first_offset: int = 0, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> list[bytes | None]:
    """The values of a batch, of the records from an offset on: a quarter of the cost of
    `iter_records`, for those who look at nothing else.

    Args:
        batch: values are copied out of it, so it may go afterwards; its checksum is not looked
            at.
        first_offset: values of records before it are left out.
        max_bytes: the most the records may decompress to.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the records do not fit the batch or its header.
    """
    if first_offset > batch.base_offset:
        records = iter_records(batch, max_bytes)
        return [record.value for record in records if record.offset >= first_offset]
    piece: Buffer = b""
    data = b""
    values: list[bytes | None] = []
    try:
        for run, bounds in iter_runs(batch, Need.WHOLE, max_bytes):
            if run is not piece:
                piece = run
                data = bytes(run)
            ends = iter(bounds)
            for start, stop in zip(ends, ends, strict=True):
                position = start + 1
                while data[position] >= 0x80:  # Neither the timestamp is of interest,
                    position += 1
                position += 1
                while data[position] >= 0x80:  # nor the offset,
                    position += 1
                position += 1
                raw = data[position]
                position += 1
                if raw >= 0x80:
                    raw, position = read_raw_zigzag(data, position - 1)
                if not raw & 1:  # nor the key. Zigzag: a length below zero is odd.
                    position += raw >> 1
                raw = data[position]
                position += 1
                if raw >= 0x80:
                    raw, position = read_raw_zigzag(data, position - 1)
                end = position if raw & 1 else position + (raw >> 1)
                if end >= stop:  # The count of headers follows.
                    raise _corrupt("a field longer than its record")
                values.append(None if raw & 1 else data[position:end])
    except IndexError as error:
        raise _corrupt("a record that cannot be decoded") from error
    return values


def iter_offsets_and_timestamps(
    batch: RecordBatch, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[tuple[int, int]]:
    """The offset of each record and its timestamp, in ms since the epoch.

    Args:
        batch: a whole one; its checksum is not looked at.
        max_bytes: the most the records may decompress to.

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
                    raw, position = read_raw_zigzag(data, position + 1)
                timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
                raw = data[position]
                if raw >= 0x80:
                    byte = data[position + 1]
                    if byte < 0x80:
                        raw = raw & 0x7F | byte << 7
                    else:
                        raw, _ = read_raw_zigzag(data, position)
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
        max_bytes: the most the records may decompress to.

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
                    raw, position = read_raw_zigzag(data, position + 1)
                timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
                offset_delta = data[position]
                if offset_delta < 0x80:
                    position += 1
                else:
                    offset_delta, position = read_raw_zigzag(data, position)
                length = data[position]
                if length < 0x80:
                    position += 1
                else:
                    length, position = read_raw_zigzag(data, position)
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


def _decode(data: bytes, start: int, base_offset: int, base_timestamp: int) -> tuple[Record, int]:
    """The record whose attributes lie at `start`, and where its last header ends."""
    timestamp_delta, position = read_zigzag_varint(data, start + 1)
    offset_delta, position = read_zigzag_varint(data, position)
    key, position = _nullable_bytes(data, position)
    value, position = _nullable_bytes(data, position)
    count, position = read_zigzag_varint(data, position)
    if not 0 <= count <= HEADERS_MAX + (len(data) - position) // HEADER_BYTES_MIN:
        raise _corrupt(f"a record with {count} headers")
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
    length, position = read_zigzag_varint(data, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(data):
        raise _corrupt("a field longer than its record")
    return data[position:end], end


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch holds {what}")
