"""`odradek produce`: lines become records."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, producer_client
from ..common.errors import explain_kafka_error, fail
from ..common.show import note
from ..topics.command import parse_pairs
from .codecs import COMPRESSIONS
from .record_json import OutgoingRecord, record_from_json

MAX_BLOCK_MS = 15_000
"""How long to wait for a topic's partitions; a topic that is not there never gets any."""

LINGER_MS = 5
BATCH_BYTES = 128 * 1024
PROGRESS_EVERY_RECORDS = 1_000

Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]


def produce(
    topic: Topic,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read this file instead of standard input.")
    ] = None,
    format: Annotated[
        Literal["lines", "json"],
        typer.Option("--format", help="json: what consume --format json writes."),
    ] = "lines",
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", help="The key is what stands before it in a line."),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="One key for all records.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="KEY=VALUE", help="For all records; repeatable."),
    ] = None,
    null_value: Annotated[
        str | None,
        typer.Option("--null-value", help="A value that reads so is a null (a tombstone)."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Default: chosen by the key.")
    ] = None,
    compression: Annotated[
        str, typer.Option("--compression", "-z", help="none, gzip, snappy, lz4 or zstd.")
    ] = "none",
    acks: Annotated[
        Literal["0", "1", "all"],
        typer.Option("--acks", help="Who must have a record before it counts as sent."),
    ] = "all",
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Default: when a terminal is looking."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Send lines as records, from standard input or a file.

    ```
    echo "hello" | odradek produce events
    odradek produce events --file people.csv --key-separator , --compression zstd
    echo "42" | odradek produce events --key answer --header source=guide
    odradek consume events --from-beginning -e --format json | odradek produce copy --format json
    ```
    """
    if compression not in COMPRESSIONS:
        fail(f"there is no compression {compression!r}; use one of {', '.join(COMPRESSIONS)}")
    headers = [(name, value.encode()) for name, value in parse_pairs(header).items()]
    settings = {
        "acks": acks if acks == "all" else int(acks),
        "enable_idempotence": acks == "all",
        "compression_type": None if compression == "none" else compression,
        "linger_ms": LINGER_MS,
        "batch_size": BATCH_BYTES,
        "max_block_ms": MAX_BLOCK_MS,
    }
    started = time.monotonic()
    with ExitStack() as stack:
        source = stack.enter_context(file.open("rb")) if file else sys.stdin.buffer
        producer = stack.enter_context(
            producer_client(bootstrap_server, command_config, **settings)
        )
        _check_partition(producer, topic, partition)
        shown = sys.stderr.isatty() and not sys.stdin.isatty() if progress is None else progress
        lines = stack.enter_context(_counted_lines(source, shown))
        if format == "json":
            records = _from_json(lines)
        else:
            records = _from_lines(lines, key, key_separator, null_value)
        sent = _send_all(producer, topic, records, headers, partition)
    seconds = time.monotonic() - started
    note(f"produced {sent:,} records to {topic} in {seconds:.1f} s")


def _from_lines(
    lines: Iterator[bytes], key: str | None, key_separator: str | None, null_value: str | None
) -> Iterator[OutgoingRecord]:
    separator = key_separator.encode() if key_separator else None
    null = null_value.encode() if null_value is not None else None
    fixed_key = key.encode() if key is not None else None
    for number, line in enumerate(lines, start=1):
        record_key, value = fixed_key, line
        if separator:
            record_key, found, value = line.partition(separator)
            if not found:
                fail(
                    f"line {number} has no {key_separator!r} between key and value; what came"
                    " before it has been sent"
                )
        yield OutgoingRecord(record_key, None if value == null else value, (), None, None)


def _from_json(lines: Iterator[bytes]) -> Iterator[OutgoingRecord]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield record_from_json(line, number)


def _check_partition(producer: Any, topic: str, partition: int | None) -> None:
    """Ask for the topic, which creates it where the broker creates topics by itself."""
    from kafka.errors import KafkaTimeoutError

    try:
        partitions = producer.partitions_for(topic)
    except KafkaTimeoutError:
        fail(f"topic {topic} is not there; create it with: odradek topics create {topic}")
    if partition is not None and partition not in partitions:
        fail(f"topic {topic} has no partition {partition}; it has {len(partitions)}, from 0")


def _send_all(
    producer: Any,
    topic: str,
    records: Iterator[OutgoingRecord],
    headers: list[tuple[str, bytes]],
    partition: int | None,
) -> int:
    """Send, and wait for the last answer; the number of records."""
    failures: list[BaseException] = []
    sent = 0
    for record in records:
        future = producer.send(
            topic,
            key=record.key,
            value=record.value,
            headers=[*headers, *record.headers],
            partition=record.partition if partition is None else partition,
            timestamp_ms=record.timestamp_ms,
        )
        future.add_errback(failures.append)
        sent += 1
        if failures:
            break
    producer.flush()
    if failures:
        fail(explain_kafka_error(failures[0], f"topic {topic}"))
    return sent


@contextmanager
def _counted_lines(source: BinaryIO, shown: bool) -> Iterator[Iterator[bytes]]:
    """The lines without their ends, with a progress bar over them when `shown`."""
    if not shown:
        yield _lines(source)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.fields[records]:,} records"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    size = os.fstat(source.fileno()).st_size or None
    with bar:
        task = bar.add_task("produce", total=size, records=0)

        def counted() -> Iterator[bytes]:
            read_bytes = records = 0
            for records, line in enumerate(source, start=1):
                read_bytes += len(line)
                if records % PROGRESS_EVERY_RECORDS == 0:
                    bar.update(task, completed=read_bytes, records=records)
                yield _without_end(line)
            bar.update(task, completed=read_bytes, records=records)

        yield counted()


def _lines(source: BinaryIO) -> Iterator[bytes]:
    for line in source:
        yield _without_end(line)


def _without_end(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\n") else line
