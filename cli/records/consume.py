"""`odradek consume`: records become lines."""

from __future__ import annotations

import re
import select
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, NamedTuple

from ...common.record_json import record_to_json
from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.show import note
from ..common.times import format_time, parse_time_ms
from ..declarations import Argument, Option
from .record_format import format_writer
from .record_values import MessageName, RegistryUrl, SchemaFile, Show, value_shower

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from ...client.consumer.consumer import Consumer
    from ...client.consumer.fetched_records import FetchedBatch, FetchedRecord

VALUE, JSON = "value", "json"

POLL_MS = 100
"""How often it is looked whether the end, or the time for it, has come."""

LOOK_MS = 500
"""How often it is looked whether anybody still reads the output."""


Topics = Annotated[
    list[str],
    Argument(
        metavar="TOPIC",
        show_default=False,
        help="Topics by name; what begins with ^ is a regular expression, for all that it finds.",
    ),
]


def consume(
    topics: Topics,
    from_beginning: Annotated[
        bool, Option("--from-beginning", help="Start at the first record there is.")
    ] = False,
    offset: Annotated[
        int | None,
        Option(
            "--offset", "-o", help="Start at this offset; -10 is ten before the end.", metavar="N"
        ),
    ] = None,
    from_time: Annotated[
        str | None,
        Option("--from-time", metavar="TIME", help="Start at a time, as 2013-06-01T12:00:00Z."),
    ] = None,
    partition: Annotated[
        list[int] | None,
        Option("--partition", "-p", min=0, help="Only this partition; may be repeated."),
    ] = None,
    group: Annotated[
        str | None,
        Option("--group", "-g", help="Read as a member of this group, and commit what was shown."),
    ] = None,
    max_messages: Annotated[
        int | None, Option("--max-messages", "-n", min=1, help="Stop after so many.")
    ] = None,
    until_end: Annotated[
        bool, Option("--until-end", "-e", help="Stop at the end instead of waiting.")
    ] = False,
    timeout: Annotated[
        float | None,
        Option("--timeout", min=0, metavar="SECONDS", help="Stop when nothing came for so long."),
    ] = None,
    format: Annotated[
        str,
        Option(
            "--format",
            "-f",
            metavar="value|json|STRING",
            help=r"json: one object a line. A string as kcat has: %t %p %o %T %k %s %h stand for"
            r" topic, partition, offset, timestamp, key, value, headers; %K and %S for lengths;"
            r" \n ends a line.",
        ),
    ] = VALUE,
    keys: Annotated[
        bool, Option("--keys", "-k", help="The key and a tab before the value.")
    ] = False,
    headers: Annotated[bool, Option("--headers", help="Show headers too.")] = False,
    timestamps: Annotated[bool, Option("--timestamps", help="Show timestamps too.")] = False,
    partitions: Annotated[
        bool, Option("--partitions", help="Show partition and offset too.")
    ] = False,
    isolation: Annotated[
        Literal["read_uncommitted", "read_committed"],
        Option("--isolation", help="read_committed leaves out aborted transactions."),
    ] = "read_uncommitted",
    registry: RegistryUrl = None,
    schema: SchemaFile = None,
    message: MessageName = None,
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
    odradek consume orders --from-beginning --registry http://localhost:8081
    odradek consume orders billing '^audit-.*' -f '%t-%p at %o: %k=%s\\n'
    ```

    Topics that an expression finds are those that there are when reading starts.
    """
    if sum((from_beginning, offset is not None, from_time is not None)) > 1:
        fail("--from-beginning, --offset and --from-time are three starts; give one of them")
    if group is not None and (offset is not None or from_time is not None):
        fail(
            "a group starts where it stopped; move it first with: odradek groups reset-offsets"
            f" {group} --topic {topics[0]} --to-offset N --execute"
        )
    if group is not None and partition:
        fail("a group's partitions are given out by the broker; leave out --partition or --group")
    start = Start(from_beginning, offset, None if from_time is None else parse_time_ms(from_time))
    shower = value_shower(registry, schema, message)
    columns = Columns(keys, headers, timestamps, partitions)
    write = _writer(format, columns, shower)
    expressions = {text: _expression(text) for text in topics if text.startswith("^")}

    async def work(client: KafkaClient) -> int:
        from ...client.consumer.consumer import Consumer
        from ...client.consumer.settings import CLASSIC, ConsumerSettings

        names = await _names(client, topics, expressions)
        chosen = [each for name in names for each in await _partitions(client, name, partition)]
        settings = ConsumerSettings(
            group_protocol=CLASSIC,
            enable_auto_commit=False,
            auto_offset_reset="earliest" if from_beginning else "latest",
            isolation_level=int(isolation == "read_committed"),
        )
        subscribed = () if group is None else tuple(names)
        async with Consumer(
            client, group_id=group, topics=subscribed, settings=settings
        ) as consumer:
            if group is None:
                await _assign(consumer, chosen, start)
            limits = Limits(max_messages, until_end, timeout)
            return await _show(consumer, limits, write, commits=group is not None)

    count = with_client(bootstrap_server, work, command_config)
    note(f"consumed {count:,} records from {', '.join(topics)}")


class Start(NamedTuple):
    """Where reading starts without a group: one of the three, or the end."""

    from_beginning: bool
    offset: int | None
    time_ms: int | None


class Limits(NamedTuple):
    """When to stop: after so many records, at the end, or when nothing came for so long."""

    max_messages: int | None
    until_end: bool
    timeout_s: float | None


Writer = Callable[["FetchedBatch", int | None], tuple[bytes, int, int]]
"""Makes output of the first so many records of a batch: the bytes, how many records they are, and
the offset behind the last of them."""


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        fail(f"{text!r} is no regular expression: {error}")


async def _names(
    client: KafkaClient, topics: Sequence[str], expressions: Mapping[str, re.Pattern[str]]
) -> list[str]:
    """The topics that are read. CommandError for an expression that finds none."""
    if not expressions:
        return list(dict.fromkeys(topics))
    from ...client.admin.admin import Admin

    existing = [
        each.name
        for each in (await Admin(client).describe_topics()).values()
        if not each.is_internal and not each.error_code
    ]
    names: list[str] = []
    for text in topics:
        expression = expressions.get(text)
        found = [text] if expression is None else [n for n in existing if expression.search(n)]
        if not found:
            fail(f"no topic's name matches {text!r}; see: odradek topics list")
        names += found
    return list(dict.fromkeys(names))


async def _partitions(
    client: KafkaClient, topic: str, requested: Sequence[int] | None
) -> list[tuple[str, int]]:
    client.add_topic(topic)
    await client.refresh_metadata()
    info = client.cluster.topic(topic)
    if info is None or not info.partitions:
        client.metadata.raise_topic_error(topic)
        fail(f"topic {topic}: there is no such topic; see: odradek topics list")
    for number in requested or ():
        if number not in info.partitions:
            fail(f"topic {topic} has no partition {number}; it has {len(info.partitions)}, from 0")
    return [(topic, number) for number in sorted(set(requested or info.partitions))]


async def _assign(consumer: Consumer, partitions: list[tuple[str, int]], start: Start) -> None:
    """Read partitions from where reading starts, within what they hold."""
    starts = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    found = {}
    if start.time_ms is not None:
        found = await consumer.offsets_for_times(dict.fromkeys(partitions, start.time_ms))
    consumer.assign(partitions)
    for each in partitions:
        first, end = starts[each], ends[each]
        position = end
        if start.from_beginning:
            position = first
        elif start.offset is not None:
            position = start.offset if start.offset >= 0 else end + start.offset
        elif each in found and found[each].offset >= 0:
            position = found[each].offset
        consumer.seek(each, min(max(position, first), end))


async def _show(consumer: Consumer, limits: Limits, write: Writer, commits: bool) -> int:
    """Put records on standard output until a limit; returns how many.

    With `until_end` it ends at the ends that the partitions had when they were first seen.
    Commits what was written, where that is set.
    """
    import trio

    output = sys.stdout.buffer
    reader = _Reader(output)

    def put(blocks: list[bytes]) -> None:
        output.writelines(blocks)
        output.flush()

    ends: dict[tuple[str, int], int] = {}
    count = 0
    last_s = trio.current_time()
    is_bounded = limits.until_end or limits.timeout_s is not None
    while not (limits.until_end and await _at_end(consumer, ends)):
        batches = await consumer.poll_batches(POLL_MS if is_bounded else LOOK_MS)
        left = None if limits.max_messages is None else limits.max_messages - count
        blocks, written, offsets = _blocks(batches, left, write)
        count += written
        if blocks:
            # A reader that does not read would hold up the heartbeats, too.
            await trio.to_thread.run_sync(put, blocks, abandon_on_cancel=True)
            last_s = trio.current_time()
        elif reader.is_gone():
            raise BrokenPipeError
        if commits and offsets:
            await _commit(consumer, offsets)
        if count == limits.max_messages:
            break
        if limits.timeout_s is not None and trio.current_time() - last_s > limits.timeout_s:
            break
    return count


class _Reader:
    """Who reads our output, through a pipe: gone early, as `head` is, it is not waited for."""

    def __init__(self, output: BinaryIO) -> None:
        self._poll = select.poll()
        with suppress(OSError, ValueError):  # no file at all, as in a test
            self._poll.register(output.fileno(), 0)

    def is_gone(self) -> bool:
        """Whether what is written now is read by nobody."""
        return any(event & select.POLLERR for _, event in self._poll.poll(0))


def _blocks(
    batches: Iterable[FetchedBatch], count_max: int | None, write: Writer
) -> tuple[list[bytes], int, dict[tuple[str, int], int]]:
    """What batches come to, how many records that is, and the offsets to go on from."""
    blocks = []
    count = 0
    offsets = {}
    for batch in batches:
        if count == count_max:
            break
        block, written, next_offset = write(batch, None if count_max is None else count_max - count)
        blocks.append(block)
        count += written
        offsets[batch.topic, batch.partition] = next_offset
    return blocks, count, offsets


async def _commit(consumer: Consumer, offsets: dict[tuple[str, int], int]) -> None:
    from ...common.errors import KafkaError

    try:
        await consumer.commit(offsets)
    except KafkaError as error:
        note(f"what was shown could not be committed, and may be shown again: {error}")


async def _at_end(consumer: Consumer, ends: dict[tuple[str, int], int]) -> bool:
    """Whether every assigned partition has been read to its end; `ends` keeps those ends."""
    assigned = consumer.assignment
    new = [partition for partition in assigned if partition not in ends]
    if new:
        ends.update(await consumer.end_offsets(new))
    positions = {each: consumer.known_position(each) for each in assigned}
    return bool(assigned) and all(
        position is not None and position >= ends[each] for each, position in positions.items()
    )


def _write_values(batch: FetchedBatch, count_max: int | None) -> tuple[bytes, int, int]:
    """A line for each value, which go through untouched."""
    values = batch.values()
    next_offset = batch.next_offset
    if count_max is not None and count_max < len(values):
        next_offset = batch.records()[count_max - 1].offset + 1
        values = values[:count_max]
    if not values:
        return b"", 0, next_offset
    shown = [b"null" if value is None else value for value in values]
    shown.append(b"")
    return b"\n".join(shown), len(values), next_offset


class Columns(NamedTuple):
    """What is shown beside the value."""

    keys: bool
    headers: bool
    timestamps: bool
    partitions: bool


def _writer(format_: str, columns: Columns, shower: Show | None) -> Writer:
    """Makes output of batches. CommandError for a format that is none."""
    if format_ not in (VALUE, JSON):
        if not {"%", "\\"} & set(format_):
            fail(
                f"there is no format {format_!r}; it is value, json, or a string with tokens, such"
                r" as '%k %s\n'"
            )
        if any(columns):
            fail("a format string says itself what is shown; leave out --keys and its kind")
        return _record_writer(format_writer(format_, shower), b"")
    if format_ == JSON:
        return _record_writer(_json(shower))
    if any(columns) or shower is not None:
        return _record_writer(_columns(*columns, shower))
    return _write_values


def _record_writer(show: Callable[[FetchedRecord], bytes], end: bytes = b"\n") -> Writer:
    """Makes a line of each record."""

    def write(batch: FetchedBatch, count_max: int | None) -> tuple[bytes, int, int]:
        records = batch.records()[:count_max]
        is_whole = count_max is None or len(records) < count_max
        next_offset = batch.next_offset if is_whole else records[-1].offset + 1
        return b"".join([show(record) + end for record in records]), len(records), next_offset

    return write


def _json(shower: Show | None) -> Callable[[FetchedRecord], bytes]:
    def show(record: FetchedRecord) -> bytes:
        value = None if shower is None else shower(record)
        return record_to_json(record, value).encode()

    return show


def _columns(
    keys: bool, headers: bool, timestamps: bool, partitions: bool, shower: Show | None
) -> Callable[[FetchedRecord], bytes]:
    """Columns with tabs between them; keys and values go through untouched."""

    def show(record: FetchedRecord) -> bytes:
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
        shown = None if shower is None else shower(record)
        value = record.value if shown is None else shown.encode()
        parts.append(b"null" if value is None else value)
        return b"\t".join(parts)

    return show
