"""`odradek consume`: records become lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from typing import Annotated, Any, Literal

import typer

from ...common.sentinels import NO_EPOCH
from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, consumer_client
from ..common.errors import fail
from ..common.show import note
from ..common.times import format_time, parse_time_ms
from .record_json import record_to_json

POLL_MS = 500
JOIN_MS = 2000
"""How long a poll may take that has to join the group: kafka-python 3.0 loses its assignment
where a poll ends while the group's leader joins again for a topic it has just learned of."""


Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]


def consume(
    topic: Topic,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the first record there is.")
    ] = False,
    offset: Annotated[
        int | None,
        typer.Option(
            "--offset", "-o", help="Start at this offset; -10 is ten before the end.", metavar="N"
        ),
    ] = None,
    from_time: Annotated[
        str | None,
        typer.Option(
            "--from-time", metavar="TIME", help="Start at a time, as 2013-06-01T12:00:00Z."
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", "-g", help="Read as a member of this group, and commit what was shown."
        ),
    ] = None,
    max_messages: Annotated[
        int | None, typer.Option("--max-messages", "-n", min=1, help="Stop after so many.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", "-e", help="Stop at the end instead of waiting.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="Stop when nothing came for so long."),
    ] = None,
    format: Annotated[
        Literal["value", "json"], typer.Option("--format", help="json: one object a line.")
    ] = "value",
    keys: Annotated[
        bool, typer.Option("--keys", "-k", help="The key and a tab before the value.")
    ] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Show headers too.")] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Show timestamps too.")] = False,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Show partition and offset too.")
    ] = False,
    isolation: Annotated[
        Literal["read_uncommitted", "read_committed"],
        typer.Option("--isolation", help="read_committed leaves out aborted transactions."),
    ] = "read_uncommitted",
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Show records, from now on or from an earlier place, until Ctrl-C.

    ```
    odradek consume events
    odradek consume events --from-beginning --until-end --format json
    odradek consume events --offset 1200 --partition 0 -n 10
    odradek consume events --from-time 2013-06-01T12:00:00Z --timestamps --keys
    odradek consume events --group my-group --from-beginning
    ```
    """
    if sum((from_beginning, offset is not None, from_time is not None)) > 1:
        fail("--from-beginning, --offset and --from-time are three starts; give one of them")
    if group is not None and (offset is not None or from_time is not None):
        fail(
            "a group starts where it stopped; move it first with: odradek groups reset-offsets"
            f" {group} --topic {topic} --to-offset N --execute"
        )
    if group is not None and partition:
        fail("a group's partitions are given out by the broker; leave out --partition or --group")
    start_ms = None if from_time is None else parse_time_ms(from_time)
    show = record_to_json if format == "json" else None
    write = _writer(show, keys, headers, timestamps, partitions)
    with consumer_client(
        bootstrap_server,
        command_config,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest" if from_beginning else "latest",
        isolation_level=isolation,
    ) as consumer:
        _check_partitions(consumer, topic, partition)
        if group is None:
            _assign(consumer, topic, partition)
            _seek(consumer, from_beginning, offset, start_ms)
        else:
            consumer.subscribe([topic])
        records = _records(consumer, until_end, timeout, commits=group is not None)
        count = 0
        for count, record in enumerate(records, start=1):
            write(record)
            if count == max_messages:
                break
        # Closing the generator commits what was shown last.
        records.close()
        sys.stdout.flush()
    note(f"consumed {count:,} records from {topic}")


def _check_partitions(consumer: Any, topic: str, requested: list[int] | None) -> None:
    existing = consumer.partitions_for_topic(topic)
    if not existing:
        fail(f"topic {topic}: there is no such topic; see: odradek topics list")
    for partition in requested or ():
        if partition not in existing:
            fail(f"topic {topic} has no partition {partition}; it has {len(existing)}, from 0")


def _assign(consumer: Any, topic: str, requested: list[int] | None) -> None:
    from kafka import TopicPartition

    partitions = sorted(set(requested or consumer.partitions_for_topic(topic)))
    consumer.assign([TopicPartition(topic, partition) for partition in partitions])


def _seek(consumer: Any, from_beginning: bool, offset: int | None, start_ms: int | None) -> None:
    """Move every assigned partition to where reading starts, within what it holds."""
    partitions = list(consumer.assignment())
    starts = consumer.beginning_offsets(partitions)
    ends = consumer.end_offsets(partitions)
    times: dict[Any, Any] = {}
    if start_ms is not None:
        times = consumer.offsets_for_times(dict.fromkeys(partitions, start_ms))
    for partition in partitions:
        first, end = starts[partition], ends[partition]
        if from_beginning:
            position = first
        elif offset is not None:
            position = min(max(offset if offset >= 0 else end + offset, first), end)
        elif times.get(partition) is not None:
            position = times[partition].offset
        else:
            position = end
        consumer.seek(partition, position)


def _records(
    consumer: Any, until_end: bool, timeout_s: float | None, commits: bool
) -> Generator[Any]:
    """Records as they come; commits those that were handed out, where that is set.

    With `until_end` it ends at the ends that the partitions had when they were first seen.
    """
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    ends: dict[Any, int] = {}
    shown: dict[Any, int] = {}
    last_ms = time.monotonic() * 1000

    def commit() -> None:
        if commits and shown:
            consumer.commit({p: OffsetAndMetadata(o, "", NO_EPOCH) for p, o in shown.items()})
            shown.clear()

    try:
        while True:
            batches = consumer.poll(timeout_ms=POLL_MS if consumer.assignment() else JOIN_MS)
            for records in batches.values():
                for record in records:
                    shown[TopicPartition(record.topic, record.partition)] = record.offset + 1
                    yield record
            commit()
            now_ms = time.monotonic() * 1000
            if batches:
                sys.stdout.flush()
                last_ms = now_ms
            elif timeout_s is not None and now_ms - last_ms > timeout_s * 1000:
                return
            if until_end and _at_end(consumer, ends):
                return
    finally:
        commit()


def _at_end(consumer: Any, ends: dict[Any, int]) -> bool:
    """Whether every assigned partition has been read to its end; `ends` keeps those ends."""
    assigned = consumer.assignment()
    new = [partition for partition in assigned if partition not in ends]
    if new:
        ends.update(consumer.end_offsets(new))
    return bool(assigned) and all(consumer.position(p) >= ends[p] for p in assigned)


def _writer(
    show: Callable[[Any], str] | None,
    keys: bool,
    headers: bool,
    timestamps: bool,
    partitions: bool,
) -> Callable[[Any], None]:
    """What puts one record on standard output; values go through untouched."""
    output = sys.stdout.buffer

    def write(record: Any) -> None:
        if show is not None:
            output.write(show(record).encode() + b"\n")
            return
        parts = []
        if partitions:
            parts.append(f"{record.partition}:{record.offset}".encode())
        if timestamps:
            parts.append(format_time(record.timestamp).encode())
        if headers:
            pairs = (name.encode() + b"=" + (value or b"") for name, value in record.headers)
            parts.append(b",".join(pairs))
        if keys:
            parts.append(b"null" if record.key is None else record.key)
        parts.append(b"null" if record.value is None else record.value)
        output.write(b"\t".join(parts) + b"\n")

    return write
