"""One batch on its way: records are written into it, then it is sealed, sent, and done.

Records are encoded straight into the bytes that will be sent; there is no object for each. Who
waits for a record asks its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...common.sentinels import NO_OFFSET, NO_SEQUENCE, NO_TIMESTAMP
from ...protocol.compression.codecs import Compression, compress
from ...protocol.records.batch import BATCH_HEADER_BYTES, SEQUENCE_MASK, RecordBatch
from ...protocol.records.builder import (
    Headers,
    append_record,
    batch_attributes,
    write_crc,
    write_header,
)
from ...protocol.records.records import iter_records

_TABLE_SIZE = 1 << 13
SMALL_VARINTS = [
    bytes((raw,)) if raw < 0x80 else bytes((raw & 0x7F | 0x80, raw >> 7))
    for raw in range(0, _TABLE_SIZE * 2, 2)
]
"""The zigzag varints of 0 to 8191. What does not need more is encoded without a call."""

RECORDS_MAX = _TABLE_SIZE
"""A batch with so many records is full."""

RECORD_OVERHEAD_MAX = 61 + 21
"""The header of a batch, and the lengths of a record without headers."""


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch (KIP-98)."""

    producer_id: int
    epoch: int


NO_IDENTITY = ProducerIdentity(-1, -1)


class ProducerBatch:
    """Records for one partition.

    Args:
        topic: of the partition.
        partition: its index.
        bytes_max: it is full with so many; a larger record has a batch of its own.
        created_ms: when its first record came, in monotonic milliseconds.
        compression: of the records, when it is sealed.
        reserved_bytes: what it takes of the buffer's memory.

    Attributes:
        count: of the records.
        is_full: whether it takes no more.
        attempts: how often it was sent.
        retry_at_ms: it may not be sent again before that.
        base_offset: of the first record, once it is in the log; -1 where the broker did not say.
        refusal: why the last attempt to send it has to be repeated; None before there was one.
        failure: why it will not be in the log, or why nobody knows.
        is_done: whether it was delivered or has failed.
        parts: the batches that took its place when it was split.
    """

    __slots__ = (
        "_compression",
        "_data",
        "_limit",
        "_listeners",
        "_sealed",
        "attempts",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "created_ms",
        "failure",
        "failure_was_seen",
        "identity",
        "is_done",
        "is_full",
        "is_transactional",
        "log_append_time_ms",
        "max_timestamp",
        "partition",
        "parts",
        "refusal",
        "reserved_bytes",
        "retry_at_ms",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        bytes_max: int,
        created_ms: int,
        *,
        compression: Compression = Compression.NONE,
        reserved_bytes: int = 0,
        is_transactional: bool = False,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.created_ms = created_ms
        self.reserved_bytes = reserved_bytes
        self.count = 0
        self.base_timestamp = self.max_timestamp = NO_TIMESTAMP
        self.is_full = False
        self.is_transactional = is_transactional
        self.attempts = 0
        self.refusal: Exception | None = None
        self.retry_at_ms = created_ms
        self.identity = NO_IDENTITY
        self.base_sequence = NO_SEQUENCE
        self.base_offset = NO_OFFSET
        self.log_append_time_ms = NO_TIMESTAMP
        self.failure: Exception | None = None
        self.failure_was_seen = False
        self.is_done = False
        self.parts: list[ProducerBatch] = []
        self._compression = compression
        self._data = bytearray(BATCH_HEADER_BYTES)
        self._limit = bytes_max
        self._sealed: bytearray | None = None
        self._listeners: list[Callable[[], None]] = []

    # --- Filling -----------------------------------------------------------------------------

    def append(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> bool:
        """Write a record at the end; False if the batch is full, which it stays.

        The first record fits, however large it is.

        Raises:
            TypeError: key or value are neither bytes nor None, or the headers are no headers.
        """
        count = self.count
        if not count:
            self.base_timestamp = self.max_timestamp = timestamp
        try:
            if value is None or headers or timestamp < self.base_timestamp:
                raise IndexError
            if key is None:
                body = b"\0%b%b\1%b%b\0" % (
                    SMALL_VARINTS[timestamp - self.base_timestamp],
                    SMALL_VARINTS[count],
                    SMALL_VARINTS[len(value)],
                    value,
                )
            else:
                body = b"\0%b%b%b%b%b%b\0" % (
                    SMALL_VARINTS[timestamp - self.base_timestamp],
                    SMALL_VARINTS[count],
                    SMALL_VARINTS[len(key)],
                    key,
                    SMALL_VARINTS[len(value)],
                    value,
                )
            head = SMALL_VARINTS[len(body)]
        except (IndexError, TypeError):
            return self._append_any(timestamp, key, value, headers)
        data = self._data
        if count and len(data) + len(body) >= self._limit:
            self.is_full = True
            return False
        data += head
        data += body
        self.count = count + 1
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return True

    def _append_any(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> bool:
        """The same for any record: large, with headers, a null, or not a record at all."""
        for name, field in (("key", key), ("value", value)):
            if field is not None and not isinstance(field, bytes | bytearray | memoryview):
                raise TypeError(f"a record's {name} is bytes or None, not {type(field).__name__}")
        record = bytearray()
        append_record(record, self.count, timestamp - self.base_timestamp, key, value, headers)
        if self.count and (
            self.count >= RECORDS_MAX or len(self._data) + len(record) > self._limit
        ):
            self.is_full = True
            return False
        self._data += record
        self.count += 1
        self.max_timestamp = max(self.max_timestamp, timestamp)
        return True

    def close(self) -> None:
        """Take no more records."""
        self.is_full = True
        self._limit = 0

    # --- Sending -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Its bytes, compressed once it is sealed."""
        return len(self._data if self._sealed is None else self._sealed)

    @property
    def data(self) -> bytearray:
        """The whole batch as it is sent, under its identity and sequence."""
        if self._sealed is None:
            self._seal()
            self._stamp()
        assert self._sealed is not None
        return self._sealed

    @property
    def has_sequence(self) -> bool:
        """Whether a sequence number was given to it."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def next_sequence(self) -> int:
        """The sequence number of the record after its last."""
        return (self.base_sequence + self.count) & SEQUENCE_MASK

    def set_sequence(self, identity: ProducerIdentity, base_sequence: int) -> None:
        """Send it under this identity and sequence from now on. It may not be in flight."""
        self.identity = identity
        self.base_sequence = base_sequence
        if self._sealed is not None:
            self._stamp()

    def _seal(self) -> None:
        self.close()
        if self._compression is Compression.NONE:
            self._sealed = self._data
            return
        with memoryview(self._data) as view:
            payload = compress(self._compression, view[BATCH_HEADER_BYTES:])
        self._sealed = self._data = bytearray(BATCH_HEADER_BYTES) + payload

    def _stamp(self) -> None:
        assert self._sealed is not None
        write_header(
            self._sealed,
            count=self.count,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            attributes=batch_attributes(
                self._compression, transactional=self.is_transactional, control=False
            ),
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.base_sequence,
        )
        write_crc(self._sealed)

    def split(self) -> list[ProducerBatch]:
        """Two batches or more with the same records, in the same place of the sequence.

        For a batch of several records that is larger than the broker takes. Each part is at most
        half as large before compression, if its records allow it.
        """
        records = list(iter_records(RecordBatch(self.data)))
        half = sum(len(r.key or b"") + len(r.value or b"") + 16 for r in records) // 2
        parts: list[ProducerBatch] = []
        sequence = self.base_sequence
        for record in records:
            values = record.timestamp, record.key, record.value, record.headers
            if parts and parts[-1].append(*values):
                continue
            part = ProducerBatch(
                self.topic,
                self.partition,
                BATCH_HEADER_BYTES + half,
                self.created_ms,
                compression=self._compression,
                is_transactional=self.is_transactional,
            )
            part.append(*values)
            parts.append(part)
        for part in parts:
            part.attempts = self.attempts
            part.close()
            part.reserved_bytes = part.size
            if self.has_sequence:
                part.set_sequence(self.identity, sequence)
                sequence = part.next_sequence
        self.parts = parts
        return parts

    # --- What became of it -------------------------------------------------------------------

    def part_of(self, index: int) -> tuple[ProducerBatch, int]:
        """The batch that a record is in now, and its place there.

        Args:
            index: the record's place in this batch.
        """
        batch = self
        while batch.parts:
            for part in batch.parts:
                if index < part.count:
                    batch = part
                    break
                index -= part.count
        return batch, index

    def delivered(self, base_offset: int, log_append_time_ms: int) -> None:
        """It is in the log."""
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self._finish()

    def failed(self, failure: Exception) -> None:
        """It is not in the log, or nobody knows and it will not be sent again."""
        self.failure = failure
        self.close()
        self._finish()

    def was_split(self) -> None:
        """Others have taken its place; who waits for it must look at them."""
        self._finish()

    def when_done(self, listener: Callable[[], None]) -> None:
        """Call this once it is delivered, has failed or was split; not if it is already."""
        self._listeners.append(listener)

    def _finish(self) -> None:
        self.is_done = True
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def __repr__(self) -> str:
        return (
            f"ProducerBatch({self.topic}-{self.partition}, {self.count} records, "
            f"epoch {self.identity.epoch}, sequence {self.base_sequence})"
        )


def bytes_upper_bound(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The most that a batch with this one record takes."""
    size = RECORD_OVERHEAD_MAX + len(key or b"") + len(value or b"")
    return size + sum(_header_bytes(headers)) if headers else size


def _header_bytes(headers: Headers) -> Iterable[int]:
    for name, value in headers:
        yield len(name) * 4 + len(value or b"") + 10
