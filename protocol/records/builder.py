"""Building a batch of format v2 from keys and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...common.sentinels import NO_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ..compression.codecs import Compression, compress
from ..varints import append_zigzag_varint
from .batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    CONTROL_FLAG,
    CRC_COVERS_FROM,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    TRANSACTIONAL_FLAG,
)
from .crc import crc32c

Headers = Sequence[tuple[str, bytes | None]]
RecordToBuild = tuple[bytes | None, bytes | None, int, Headers]
"""Key, value, timestamp in milliseconds since the epoch, headers."""

CRC_AT = 17
NULL_LENGTH = b"\x01"  # -1 in zigzag


class EncodedRecords:
    """The records of a batch, encoded one by one: for work that is done in steps.

    Attributes:
        body: their bytes.
        count: how many they are.
        base_timestamp: of the first, in ms.
        max_timestamp: the latest of any, in ms.
    """

    __slots__ = ("base_timestamp", "body", "count", "max_timestamp")

    def __init__(self) -> None:
        self.body = bytearray()
        self.count = 0
        self.base_timestamp = self.max_timestamp = -1

    def append(self, record: RecordToBuild) -> None:
        """Encode one more."""
        key, value, timestamp, headers = record
        if self.count == 0:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        append_record(self.body, self.count, timestamp - self.base_timestamp, key, value, headers)
        self.count += 1


def build_batch(
    records: Iterable[RecordToBuild] | EncodedRecords,
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    partition_leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """One batch that holds `records` in order, with consecutive offsets.

    Args:
        records: at least one; each a key, a value, a timestamp in ms and headers. Where
            they are encoded already, they are a batch at once, however many they are.
        base_offset: the first record's offset; a leader assigns its own anyway.
        compression: how the records are compressed.
        partition_leader_epoch: stamped on the batch; a leader stamps its own anyway.
        producer_id: of an idempotent producer, else -1.
        producer_epoch: likewise.
        base_sequence: the first record's sequence number, else -1.
        transactional: whether the batch is part of a transaction.
        control: whether it is a marker, not data.

    Raises:
        ValueError: there are no records.
    """
    if not isinstance(records, EncodedRecords):
        encoded = EncodedRecords()
        for record in records:
            encoded.append(record)
        records = encoded
    body, count = records.body, records.count
    if count == 0:
        raise ValueError("a batch holds at least one record")
    payload = body if compression is Compression.NONE else compress(compression, body)
    batch = bytearray(BATCH_HEADER_BYTES)
    batch += payload
    write_header(
        batch,
        count=count,
        base_timestamp=records.base_timestamp,
        max_timestamp=records.max_timestamp,
        attributes=batch_attributes(compression, transactional=transactional, control=control),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    write_crc(batch)
    return batch


def batch_attributes(compression: Compression, *, transactional: bool, control: bool) -> int:
    """The attributes of a batch whose timestamps are its producer's."""
    return (
        compression
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
    )


def write_header(
    batch: bytearray,
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> None:
    """Write the header of one whole batch, all but its checksum, into its first 61 bytes.

    Args:
        batch: with its records behind the header, compressed already.
        count: of the records; their offsets are consecutive.
        base_timestamp: of the first record, in ms.
        max_timestamp: the latest of any record, in ms.
        attributes: as `batch_attributes` makes them.
        base_offset: as for `build_batch`, and so is the rest.
    """
    BATCH_HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD_BYTES,
        partition_leader_epoch,
        MAGIC_V2,
        0,
        attributes,
        count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )


def write_crc(batch: bytearray | memoryview) -> None:
    """Compute the checksum of one whole batch and store it in its header."""
    with memoryview(batch) as view:
        checksum = crc32c(view[CRC_COVERS_FROM:])
    batch[CRC_AT:CRC_COVERS_FROM] = checksum.to_bytes(4, "big")


def append_record(
    body: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> None:
    """Write one record at the end of a batch's records.

    Args:
        body: the records so far.
        offset_delta: to the batch's base offset.
        timestamp_delta: to the batch's base timestamp, in milliseconds.
        key: or None.
        value: or None.
        headers: names and values.
    """
    record = bytearray(1)  # attributes: none are in use
    append_zigzag_varint(record, timestamp_delta)
    append_zigzag_varint(record, offset_delta)
    _append_nullable(record, key)
    _append_nullable(record, value)
    append_zigzag_varint(record, len(headers))
    for name, header_value in headers:
        _append_nullable(record, name.encode("utf-8"))
        _append_nullable(record, header_value)
    append_zigzag_varint(body, len(record))
    body += record


def _append_nullable(record: bytearray, value: bytes | None) -> None:
    if value is None:
        record += NULL_LENGTH
    else:
        append_zigzag_varint(record, len(value))
        record += value
