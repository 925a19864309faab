"""Lines become records, and these are sent: what `odradek produce` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import trio

from ...client.client import KafkaClient
from ...client.errors import MetadataTimeoutError
from ...client.producer.errors import RecordTooLargeError
from ...client.producer.producer import Producer
from ...client.producer.settings import ProducerSettings
from ...common.record_json import RecordJsonError, record_from_json
from ...protocol.compression.codecs import Compression
from ..common.errors import CommandError, fail
from ..common.show import note
from ..common.times import format_duration

MAX_BLOCK_MS = 15_000
"""How long to wait for a topic's partitions; a topic that is not there never gets any."""

LINGER_MS = 5
BATCH_BYTES = 128 * 1024
READ_BYTES = 256 * 1024

HELD_UP_MS = 2000
"""Records that wait for so long are worth a line."""
WATCH_SECONDS = 0.5
REPEAT_SECONDS = 10

RECORD_BYTES_MAX = 100 * 1024 * 1024
"""No larger request goes to a broker with Kafka's own `socket.request.max.bytes`; what the topic
takes is for the broker to say."""


async def _partition_count(client: KafkaClient, topic: str, partition: int | None) -> int:
    """Ask for the topic, which creates it where the broker creates topics by itself."""
    try:
        info = await client.wait_for_topic(topic, timeout_ms=MAX_BLOCK_MS)
    except MetadataTimeoutError:
        fail(f"topic {topic} is not there; create it with: odradek topics create {topic}")
    count = len(info.partitions)
    if partition is not None and partition not in info.partitions:
        fail(f"topic {topic} has no partition {partition}; it has {count}, from 0")
    return count


async def send_lines(
    client: KafkaClient,
    topic: str,
    source: Readable,
    records: RecordsOfLines,
    report: Callable[[int, int], None],
    *,
    acks: int,
    compression: str,
    partition: int | None,
) -> int:
    """Send a file's lines, and wait for the last answer; returns the number of records.

    Args:
        client: of the cluster.
        topic: they go to.
        source: the file.
        records: makes records of its lines.
        report: is called with the bytes read and the records sent so far.
        acks: -1, 0 or 1.
        compression: a codec's name.
        partition: they all go to; None: any.

    Raises CommandError for what is no record, and for a topic or partition that is not there.
    """
    records.partition_count = await _partition_count(client, topic, partition)
    settings = ProducerSettings(
        acks=acks,
        compression_type=Compression.from_name(compression),
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
        max_request_size=RECORD_BYTES_MAX,
        buffer_memory=RECORD_BYTES_MAX,
    )
    lines = _Lines(source)
    sent = 0
    async with Producer(client, settings) as producer, trio.open_nursery() as nursery:
        nursery.start_soon(_watch, producer, lines)
        try:
            while group := await lines.next_group():
                timestamp_ms = client.clock.now_ms()
                for record in records.of(group, timestamp_ms):
                    try:
                        producer.send_nowait(topic, *record)
                    except trio.WouldBlock:
                        await producer.send(topic, *record)
                    sent += 1
                report(lines.read_bytes, sent)
                if producer.has_failed:
                    break
            await producer.flush()
        except (CommandError, RecordTooLargeError) as error:
            await producer.flush()
            fail(str(error))
        nursery.cancel_scope.cancel()
    return sent


async def _watch(producer: Producer, lines: _Lines) -> None:
    """Say what holds records up, while it does; end the reading once a record is lost."""
    noted, noted_s = "", 0.0
    while not producer.has_failed:
        await trio.sleep(WATCH_SECONDS)
        held_up = producer.held_up()
        if held_up is None or held_up.since_ms < HELD_UP_MS:
            continue
        now_s = trio.current_time()
        if held_up.reason != noted or now_s - noted_s > REPEAT_SECONDS:
            note(
                f"{held_up.records:,} records wait, the first for"
                f" {format_duration(held_up.since_ms)}: {held_up.reason}"
            )
            noted, noted_s = held_up.reason, now_s
    lines.stop()


# --- Lines ----------------------------------------------------------------------------------


class Readable(Protocol):
    """A file."""

    def read(self, size: int, /) -> bytes | None:
        """Some bytes; empty at the end."""

    def fileno(self) -> int:
        """Its descriptor."""


class _Lines:
    """Lines without their ends (LF or CR LF), as many at a time as one read brings.

    Reading waits in a thread, so that what was read before is sent meanwhile.
    """

    def __init__(self, source: Readable) -> None:
        self.read_bytes = 0
        self._source = source
        self._is_stopped = False
        self._reading = trio.CancelScope()
        self._unfinished: list[bytes] = []
        """Pieces of a line whose end has not come."""

    async def next_group(self) -> list[bytes]:
        """The next lines; none at the end, or once it was stopped."""
        while not self._is_stopped and (chunk := await self._read()):
            self.read_bytes += len(chunk)
            lines = chunk.split(b"\n")
            self._unfinished.append(lines[0])
            if len(lines) > 1:
                lines[0] = b"".join(self._unfinished)
                self._unfinished = [lines.pop()]
                if b"\r" in chunk or lines[0].endswith(b"\r"):
                    lines = [line.removesuffix(b"\r") for line in lines]
                return lines
        rest, self._unfinished = b"".join(self._unfinished), []
        return [rest] if rest and not self._is_stopped else []

    def stop(self) -> None:
        """What came so far is all, though more could be read."""
        self._is_stopped = True
        self._reading.cancel()

    async def _read(self) -> bytes | None:
        with trio.CancelScope() as self._reading:
            return await trio.to_thread.run_sync(
                self._source.read, READ_BYTES, abandon_on_cancel=True
            )
        return None


Record = tuple[
    bytes | None, bytes | None, int | None, Sequence[tuple[str, bytes | None]], int | None
]
"""Value, key, partition, headers and timestamp, as `Producer.send` takes them."""


class RecordsOfLines(Protocol):
    """Makes records of lines.

    Attributes:
        partition_count: how many partitions the topic has.
    """

    partition_count: int

    def of(self, lines: list[bytes], timestamp_ms: int) -> Iterator[Record]:
        """The records of the next lines.

        Args:
            lines: without their ends.
            timestamp_ms: of records that have none.

        Raises CommandError, naming the line, for what is no record.
        """


class RecordsFromLines:
    """Each line is a value, perhaps with a key before it."""

    def __init__(
        self,
        key: str | None,
        separator: str | None,
        null_value: str | None,
        headers: list[tuple[str, bytes]],
        partition: int | None,
    ) -> None:
        self._key = None if key is None else key.encode()
        self._separator = separator
        self._null = None if null_value is None else null_value.encode()
        self._headers = headers
        self._partition = partition
        self._number = 0
        self.partition_count = 0

    def of(self, lines: list[bytes], timestamp_ms: int) -> Iterator[Record]:
        key, null = self._key, self._null
        partition, headers = self._partition, self._headers
        if self._separator:
            yield from self._with_keys(lines, self._separator, timestamp_ms)
            return
        for line in lines:
            yield None if line == null else line, key, partition, headers, timestamp_ms

    def _with_keys(self, lines: list[bytes], separator: str, timestamp_ms: int) -> Iterator[Record]:
        between, null = separator.encode(), self._null
        for line in lines:
            self._number += 1
            key, found, value = line.partition(between)
            if not found:
                fail(
                    f"line {self._number} has no {separator!r} between key and value; what came"
                    " before it has been sent"
                )
            yield (
                None if value == null else value,
                key,
                self._partition,
                self._headers,
                timestamp_ms,
            )


class RecordsFromJson:
    """Each line is a record as `consume --format json` writes it."""

    def __init__(
        self,
        headers: list[tuple[str, bytes]],
        partition: int | None,
        *,
        values_are_json: bool = False,
        repartition: bool = False,
    ) -> None:
        self._values_are_json = values_are_json
        self._repartition = repartition
        self._headers = headers
        self._partition = partition
        self._number = 0
        self.partition_count = 0

    def of(self, lines: list[bytes], timestamp_ms: int) -> Iterator[Record]:
        for line in lines:
            self._number += 1
            if not line.strip():
                continue
            try:
                record = record_from_json(line, self._number, value_is_json=self._values_are_json)
            except RecordJsonError as error:
                fail(str(error))
            yield (
                record.value,
                record.key,
                self._partition_of(record.partition),
                [*self._headers, *record.headers],
                timestamp_ms if record.timestamp_ms is None else record.timestamp_ms,
            )

    def _partition_of(self, partition: int | None) -> int | None:
        if self._partition is not None or self._repartition or partition is None:
            return self._partition
        if partition >= self.partition_count:
            fail(
                f"line {self._number} is for partition {partition}, and the topic has"
                f" {self.partition_count}, from 0; what came before it has been sent; with"
                " --repartition keys choose the partition, whatever the lines say"
            )
        return partition


class EncodedRecords:
    """Records of another kind, with their values encoded.

    Args:
        records: with values as JSON text.
        encode: makes bytes of a value, or raises CommandError.
    """

    def __init__(self, records: RecordsOfLines, encode: Callable[[bytes], bytes]) -> None:
        self._records = records
        self._encode = encode

    @property
    def partition_count(self) -> int:
        """Of the topic, as the records' own."""
        return self._records.partition_count

    @partition_count.setter
    def partition_count(self, count: int) -> None:
        self._records.partition_count = count

    def of(self, lines: list[bytes], timestamp_ms: int) -> Iterator[Record]:
        for value, *others in self._records.of(lines, timestamp_ms):
            yield (None if value is None else self._encode(value), *others)  # type: ignore[misc]  # the rest is what it was
