"""The header of a record batch, format v2 (KIP-98), read where it lies.

A batch is 61 bytes of header and then its records, compressed as one block or not at
all. The checksum covers everything from the attributes on, so the base offset and the
leader epoch in front of it may be patched without computing it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_ID, NO_SEQUENCE
from ..compression.codecs import Compression

Buffer = bytes | bytearray | memoryview

BATCH_HEADER_BYTES = 61
"""From the base offset up to the first record."""

LOG_OVERHEAD_BYTES = 12
"""Base offset and batch length; the length counts what follows them."""

MAGIC_V2 = 2
CRC_COVERS_FROM = 21
"""Where the attributes lie: the first byte the checksum covers."""

COMPRESSION_MASK = 0x07
CODECS = tuple(Compression)
"""By their numbers, which are their places."""
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

SEQUENCE_MASK = 0x7FFFFFFF
"""Sequence numbers run from 0 to 2^31 - 1 and then begin at 0 again."""

BATCH_HEADER = Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base
timestamp, max timestamp, producer id, producer epoch, base sequence, records count."""

OFFSET_LENGTH_AND_EPOCH = Struct(">qii")
"""The 16 bytes a leader may overwrite without touching the checksum."""


class RecordBatch:
    """A view of one batch inside a buffer; the fields are read, the records are not.

    Args:
        buffer: holds the batch, which is not copied.
        position: where the batch begins in the buffer.

    Raises:
        struct.error: fewer than 61 bytes are left at `position`.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "buffer",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "records_count",
    )

    base_offset: int
    batch_length: int
    """Counts what follows this field."""
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        self.buffer = buffer
        self.position = position
        (
            self.base_offset,
            self.batch_length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.records_count,
        ) = BATCH_HEADER.unpack_from(buffer, position)

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        """The offset of the last record, also when compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset right after this batch."""
        return self.last_offset + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, or -1 of a producer without one."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MASK

    @property
    def compression(self) -> Compression:
        """How the records are compressed.

        Raises:
            KafkaError: CORRUPT_MESSAGE, a number no codec has.
        """
        try:
            return CODECS[self.attributes & COMPRESSION_MASK]
        except IndexError:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, "the batch names an unknown compression"
            ) from None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote it."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether it holds markers for the brokers and clients, not records of a user."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def uses_log_append_time(self) -> bool:
        """Whether all its records carry the broker's time, which is the max timestamp."""
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    def records_section(self) -> memoryview:
        """The bytes after the header, still compressed where the batch is."""
        start = self.position + BATCH_HEADER_BYTES
        return memoryview(self.buffer)[start : self.position + self.size_in_bytes]

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets {self.base_offset}..{self.last_offset}, "
            f"{self.size_in_bytes} bytes, leader epoch {self.partition_leader_epoch})"
        )


def iter_batches(buffer: Buffer, position: int = 0) -> Iterator[RecordBatch]:
    """The whole batches of a buffer in order; what a size limit cut at the end is left out.

    Args:
        buffer: batches one after another, as a fetch answers them or a segment holds them.
        position: where the first batch begins.

    Raises:
        KafkaError: CORRUPT_MESSAGE for a length no batch can have or an unknown magic,
            UNSUPPORTED_FOR_MESSAGE_FORMAT for the formats v0 and v1.
    """
    end = len(buffer)
    while end - position >= BATCH_HEADER_BYTES:
        batch = RecordBatch(buffer, position)
        require_readable_format(batch.magic, batch.batch_length)
        if batch.size_in_bytes > end - position:
            return
        yield batch
        position += batch.size_in_bytes


def require_readable_format(magic: int, batch_length: int) -> None:
    """Refuse what cannot be a batch of format v2.

    Raises:
        KafkaError: CORRUPT_MESSAGE or UNSUPPORTED_FOR_MESSAGE_FORMAT.
    """
    if magic in (0, 1):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"record batches of format v{magic} are not supported, only v2",
        )
    if magic != MAGIC_V2:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"there is no record format {magic}")
    if batch_length < BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"a batch cannot be as short as {batch_length} bytes"
        )
