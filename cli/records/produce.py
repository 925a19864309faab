"""`odradek produce`: lines become records."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ...common.sentinels import ACKS_ALL
from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.show import note
from ..declarations import Argument, Option
from ..topics.command import parse_pairs
from .record_values import MessageName, RegistryUrl, SchemaFile, value_encoder

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from .sending import Readable

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")

Topic = Annotated[str, Argument(metavar="TOPIC", show_default=False)]


def produce(
    topic: Topic,
    file: Annotated[
        Path | None, Option("--file", "-f", help="Read this file instead of standard input.")
    ] = None,
    format: Annotated[
        Literal["lines", "json"],
        Option("--format", help="json: what consume --format json writes."),
    ] = "lines",
    key_separator: Annotated[
        str | None,
        Option(
            "--key-separator",
            "-K",
            help="The key is what stands before it in a line; \\t is a tab.",
        ),
    ] = None,
    key: Annotated[str | None, Option("--key", "-k", help="One key for all records.")] = None,
    header: Annotated[
        list[str] | None,
        Option("--header", "-H", metavar="KEY=VALUE", help="For all records; repeatable."),
    ] = None,
    null_value: Annotated[
        str | None,
        Option("--null-value", help="A value that reads so is a null (a tombstone)."),
    ] = None,
    partition: Annotated[
        int | None, Option("--partition", "-p", min=0, help="Default: chosen by the key.")
    ] = None,
    repartition: Annotated[
        bool,
        Option("--repartition", help="Of JSON lines, ignore their partitions; keys choose them."),
    ] = False,
    compression: Annotated[
        str, Option("--compression", "-z", help="none, gzip, snappy, lz4 or zstd.")
    ] = "none",
    acks: Annotated[
        Literal["0", "1", "all"],
        Option("--acks", help="Who must have a record before it counts as sent."),
    ] = "all",
    registry: RegistryUrl = None,
    subject: Annotated[
        str | None,
        Option("--subject", help="Of --registry, whose schema is used; else TOPIC-value."),
    ] = None,
    schema: SchemaFile = None,
    message: MessageName = None,
    progress: Annotated[
        bool | None,
        Option("--progress/--no-progress", help="Default: when a terminal is looking."),
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
    echo '{"id": 1}' | odradek produce orders --registry http://localhost:8081
    ```
    """
    if compression not in COMPRESSIONS:
        fail(f"there is no compression {compression!r}; use one of {', '.join(COMPRESSIONS)}")
    fixed_headers = [(name, value.encode()) for name, value in parse_pairs(header).items()]
    # What takes long to import is imported once the arguments are known to be right.
    from .record_format import unescaped
    from .sending import (
        EncodedRecords,
        RecordsFromJson,
        RecordsFromLines,
        RecordsOfLines,
        send_lines,
    )

    encode = value_encoder(registry, schema, message, subject or f"{topic}-value")

    if format == "json":
        records: RecordsOfLines = RecordsFromJson(
            fixed_headers,
            partition,
            values_are_json=encode is not None,
            repartition=repartition,
        )
    else:
        separator = None if key_separator is None else unescaped(key_separator)
        records = RecordsFromLines(key, separator, null_value, fixed_headers, partition)
    if encode is not None:
        records = EncodedRecords(records, encode)
    started = time.monotonic()
    with ExitStack() as stack:
        source = stack.enter_context(file.open("rb", buffering=0)) if file else _standard_input()
        shown = sys.stderr.isatty() and not sys.stdin.isatty() if progress is None else progress
        report = stack.enter_context(_progress(source)) if shown else _report_nothing

        async def work(client: KafkaClient) -> int:
            return await send_lines(
                client,
                topic,
                source,
                records,
                report,
                acks=ACKS_ALL if acks == "all" else int(acks),
                compression=compression,
                partition=partition,
            )

        sent = with_client(bootstrap_server, work, command_config, allow_auto_create_topics=True)
    seconds = time.monotonic() - started
    note(f"produced {sent:,} records to {topic} in {seconds:.1f} s")


def _standard_input() -> Readable:
    """Standard input without a buffer, which a thread that reads could not let go of."""
    buffer = sys.stdin.buffer
    return getattr(buffer, "raw", buffer)


@contextmanager
def _progress(source: Readable) -> Iterator[Callable[[int, int], None]]:
    """A progress bar, and what moves it: called with the bytes read and the records sent."""
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
        yield lambda read_bytes, records: bar.update(task, completed=read_bytes, records=records)


def _report_nothing(read_bytes: int, records: int) -> None:
    """Nobody is looking."""
