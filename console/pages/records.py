"""Records of a topic: looked through, one of them whole, and followed as they are written."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import trio
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...client.producer.partitioner import partition_of_key
from ...common.errors import ErrorCode, KafkaError
from ...protocol.records.control import parse_end_transaction_marker
from ..cluster.gathering import gather
from ..context import ConsoleContext, context_of
from ..explaining import HANDLED, NOBODY_ANSWERS, explain
from ..parameters import ParameterError, Parameters, parse_time_ms
from ..records.matching import Filter, WhereError, parse_where
from ..records.payload import WAYS, by_schema, is_json, preview, preview_by_schema, shown_as
from ..records.reading import (
    Bounds,
    Found,
    FoundRecord,
    RecordReader,
    iter_positions,
    write_positions,
)
from ..records.schema_values import RecordTexts

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...protocol import messages

    Topic = messages.MetadataResponse.MetadataResponseTopic

SEEKS: Final = ("newest", "oldest", "offset", "time")
LIMITS: Final = ("50", "20", "100", "200")
PARTITIONS_MAX: Final = 64
"""Of a topic with more the first so many are read together; any of them alone."""

HEADERS_MAX: Final = 100
"""Of a record with more the first are shown."""

LOOKS_MAX: Final = 4
"""Looks at once: each may hold tens of megabytes."""
FOLLOWERS_MAX: Final = 16
FOLLOW_PAUSE_SECONDS: Final = 0.5
FOLLOW_ROWS_MAX: Final = 50
"""New records that are shown at once; of more only the last ones are."""
KEEP_ALIVE_ROUNDS: Final = 30


class Look(NamedTuple):
    """What an address asks for.

    Attributes:
        partition: None: all of them.
        seek: where to begin.
        at: where each partition is to be read from, on a page that follows another.
    """

    partition: int | None
    seek: str
    offset: int
    time: str
    key: str
    text: str
    header: str
    where: str
    committed: bool
    limit: int
    at: str

    @property
    def is_backwards(self) -> bool:
        """Whether the youngest come first."""
        return self.seek == "newest"

    def query(self) -> dict[str, object]:
        """The same as a query, without where it stands."""
        return {
            "partition": self.partition,
            "seek": self.seek if self.seek != SEEKS[0] else None,
            "offset": self.offset if self.seek == "offset" else None,
            "time": self.time,
            "key": self.key,
            "text": self.text,
            "header": self.header,
            "where": self.where,
            "committed": 1 if self.committed else None,
            "limit": self.limit if str(self.limit) != LIMITS[0] else None,
        }

    def filter(self) -> Filter:
        """What matches. Raises ParameterError."""
        try:
            where = parse_where(self.where)
        except WhereError as error:
            raise ParameterError(str(error)) from error
        return Filter(
            self.text.encode(), self.key.encode() if self.key else None, self.header, where
        )


def look_of(parameters: Parameters) -> Look:
    """What a query asks for. Raises ParameterError."""
    return Look(
        parameters.optional_number("partition"),
        parameters.choice("seek", SEEKS),
        parameters.number("offset", 0),
        parameters.text("time", length_max=40),
        parameters.text("key"),
        parameters.text("text"),
        parameters.text("header"),
        parameters.text("where"),
        parameters.flag("committed"),
        int(parameters.choice("limit", LIMITS)),
        parameters.text("at", length_max=4_000),
    )


async def browse(request: Request) -> Response:
    """A page of records."""
    context = context_of(request)
    topic = await context.cluster.topic(request.path_params["topic"])
    look = look_of(Parameters(request.query_params))
    problem, found, bounds = "", None, {}
    try:
        reader = reader_of(context, topic, look)
        async with _readers(request).looks:
            bounds = await reader.bounds(partitions_of(context, topic, look))
            found = await _find(reader, look, bounds)
    except ParameterError as error:
        problem = f"{error}."
    except HANDLED as error:
        problem = explain(error, context.settings.cluster).advice
    rows = [] if found is None else await rows_of(context, topic.name or "", found.records)
    return _page(request, topic, look, found, rows, bounds, problem)


def _page(
    request: Request,
    topic: Topic,
    look: Look,
    found: Found | None,
    rows: Sequence[Row],
    bounds: Mapping[int, Bounds],
    problem: str,
) -> Response:
    goes_on = found is not None and not found.is_at_end
    at = write_positions(found.positions) if found is not None and goes_on else ""
    return context_of(request).render.page(
        request,
        "records.html",
        section="topics",
        title=topic.name,
        topic=topic,
        tab="records",
        look=look,
        query=look.query(),
        seeks=SEEKS,
        limits=LIMITS,
        found=found,
        rows=rows,
        total=sum(each.end - each.start for each in bounds.values()),
        further=at,
        problem=problem,
        partitions_max=PARTITIONS_MAX,
        command=_command(context_of(request), topic.name or "", look),
        chosen=None,
        record=None,
    )


def partitions_of(context: ConsoleContext, topic: Topic, look: Look) -> list[int]:
    """The partitions that are read: those that have a leader. Raises ParameterError."""
    led = [each.partition_index for each in topic.partitions if each.leader_id >= 0]
    if look.partition is not None:
        if look.partition not in led:
            raise ParameterError(
                f"partition {look.partition} is none of the topic's, or has no leader for now"
            )
        return [look.partition]
    if look.key and not look.text and not _may_be_json_of_schema(context, topic, look.key):
        return [
            index
            for index in led
            if index == partition_of_key(look.key.encode(), len(topic.partitions))
        ]
    return led[:PARTITIONS_MAX]


def _may_be_json_of_schema(context: ConsoleContext, topic: Topic, key: str) -> bool:
    """Whether a key may be meant that a schema reads so: of its bytes, which say in which partition
    it is, only the serializer knew, such as by which version of the schema they were written."""
    return context.schemas.keys.knows(topic.name or "") and is_json(key)


def reader_of(context: ConsoleContext, topic: Topic, look: Look) -> RecordReader:
    """What reads a topic's records for a look."""
    return RecordReader(
        context.client, topic.name or "", context.schemas, committed_only=look.committed
    )


async def _find(reader: RecordReader, look: Look, bounds: Mapping[int, Bounds]) -> Found:
    filter_ = look.filter()
    at = {index: offset for index, offset in iter_positions(look.at) if index in bounds}
    if look.is_backwards:
        ends = {index: each.end for index, each in bounds.items()}
        return await reader.backwards(bounds, at or ends, filter_, look.limit)
    if look.seek == "offset":
        start = dict.fromkeys(bounds, look.offset)
    elif look.seek == "time":
        start = await reader.at_time(bounds, parse_time_ms(look.time))
    else:
        start = {index: each.start for index, each in bounds.items()}
    return await reader.forwards(bounds, at or start, filter_, look.limit)


def _command(context: ConsoleContext, topic: str, look: Look) -> str:
    """The command line that reads about the same."""
    words = ["odradek", "consume", topic, "-b", context.settings.cluster]
    if look.partition is not None:
        words += ["-p", str(look.partition)]
    words += {
        "newest": ["--offset", f"-{look.limit}"],
        "oldest": ["--from-beginning"],
        "offset": ["--offset", str(look.offset)],
        "time": ["--from-time", look.time],
    }[look.seek]
    if look.committed:
        words += ["--isolation", "read_committed"]
    return shlex.join([*words, "-n", str(look.limit), "--until-end"])


class Row(NamedTuple):
    """A record in a table."""

    partition: int
    offset: int
    timestamp: int
    key: object
    value: object
    headers: int
    size: int
    marker: str
    is_transactional: bool


async def rows_of(context: ConsoleContext, topic: str, found: Sequence[FoundRecord]) -> list[Row]:
    """What a table shows of records."""
    texts = await _texts_of(context, topic, found)
    return [row_of(each, *both) for each, both in zip(found, texts, strict=True)]


async def _texts_of(
    context: ConsoleContext, topic: str, found: Sequence[FoundRecord]
) -> list[RecordTexts]:
    """The JSON of keys and values, where schemas say what they are."""
    keys, values = await gather(
        lambda: context.schemas.keys.texts(topic, [each.key for each in found]),
        lambda: context.schemas.values.texts(topic, [each.value for each in found]),
    )
    return list(map(RecordTexts, keys, values))


def row_of(found: FoundRecord, key: str | None = None, value: str | None = None) -> Row:
    """What a table shows of a record.

    Args:
        key: the JSON of its key, if a schema says what it is.
        value: the JSON of its value, likewise.
    """
    record = found.record
    return Row(
        found.partition,
        found.offset,
        record.timestamp,
        preview(record.key) if key is None else preview_by_schema(record.key or b"", key),
        preview(record.value) if value is None else preview_by_schema(record.value or b"", value),
        len(record.headers),
        len(record.key or b"") + len(record.value or b""),
        marker_of(found),
        found.batch.is_transactional,
    )


def marker_of(found: FoundRecord) -> str:
    """What a control record says; "" of a record of a user."""
    if not found.batch.is_control:
        return ""
    try:
        marker = parse_end_transaction_marker(found.record)
    except KafkaError:
        marker = None
    return "control record" if marker is None else f"{marker.type.name} marker"


# --- One record --------------------------------------------------------------------------------


async def show(request: Request) -> Response:
    """One record whole, with its batch; beside the table where htmx asks for it."""
    context = context_of(request)
    name = request.path_params["topic"]
    parameters = Parameters(request.query_params)
    found = await _read(context, request)
    way = parameters.choice("as", WAYS)
    record = found.record
    key, value = shown_as(record.key, way), shown_as(record.value, way)
    if way in ("auto", "json"):
        (texts,) = await _texts_of(context, name, [found])
        if record.key is not None and texts.key is not None:
            key = by_schema(record.key, texts.key, context.schemas.keys.remark(name, record.key))
        if record.value is not None and texts.value is not None:
            remark = context.schemas.values.remark(name, record.value)
            value = by_schema(record.value, texts.value, remark)
    return context.render.page(
        request,
        "_record.html" if "hx-request" in request.headers else "record.html",
        section="topics",
        title=f"{name} {found.partition}:{found.offset}",
        topic=await context.cluster.topic(name),
        tab="records",
        record=record,
        partition=found.partition,
        batch=found.batch,
        marker=marker_of(found),
        key=key,
        value=value,
        headers=[(header, preview(payload)) for header, payload in record.headers[:HEADERS_MAX]],
        headers_cut=max(len(record.headers) - HEADERS_MAX, 0),
        way=way,
        ways=WAYS,
        path=_record_path(name, found.partition, found.offset),
        command=_command(
            context,
            name,
            look_of(Parameters({}))._replace(
                partition=found.partition, seek="offset", offset=found.offset, limit=1
            ),
        ),
    )


async def save(request: Request) -> Response:
    """The bytes of a value or a key, to be saved: never shown as a page of this console."""
    found = await _read(context_of(request), request)
    what = Parameters(request.path_params).choice("what", ("value", "key"))
    payload = found.record.value if what == "value" else found.record.key
    name = quote(f"{request.path_params['topic']}-{found.partition}-{found.offset}.{what}", safe="")
    return Response(
        payload or b"",
        media_type="application/octet-stream",
        headers={"content-disposition": f"attachment; filename*=UTF-8''{name}"},
    )


async def _read(context: ConsoleContext, request: Request) -> FoundRecord:
    """The record that a path names. Raises KafkaError: OFFSET_OUT_OF_RANGE."""
    path = Parameters(request.path_params)
    partition, offset = path.number("partition", 0, 0, 1 << 31), path.number("offset", 0)
    topic = await context.cluster.topic(path.text("topic"))
    if all(each.partition_index != partition for each in topic.partitions):
        raise ParameterError(f"the topic has no partition {partition}")
    await context.client.wait_for_topic(topic.name or "")
    async with _readers(request).looks:
        found = await RecordReader(context.client, topic.name or "", context.schemas).one(
            partition, offset
        )
    if found is None:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset}")
    return found


def _record_path(topic: str, partition: int, offset: int) -> str:
    return f"/topics/{quote(topic, safe='')}/records/{partition}/{offset}"


# --- Following ---------------------------------------------------------------------------------


async def show_followed(request: Request) -> Response:
    """The page on which new records appear."""
    context = context_of(request)
    topic = await context.cluster.topic(request.path_params["topic"])
    look = look_of(Parameters(request.query_params))
    look.filter()
    return context.render.page(
        request,
        "follow.html",
        section="topics",
        title=topic.name,
        topic=topic,
        tab="records",
        look=look,
        query=look.query(),
        partitions_max=PARTITIONS_MAX,
    )


class Readers:
    """Who reads records: some look through them, one after another where they are many, and
    some pages are kept fresh."""

    def __init__(self) -> None:
        self.looks = trio.CapacityLimiter(LOOKS_MAX)
        self.followers = 0


def _readers(request: Request) -> Readers:
    readers: Readers = request.app.state.readers
    return readers


async def follow(request: Request) -> Response:
    """New records, as server-sent events of rows."""
    context = context_of(request)
    topic = await context.cluster.topic(request.path_params["topic"])
    look = look_of(Parameters(request.query_params))
    filter_ = look.filter()
    readers = _readers(request)
    if readers.followers >= FOLLOWERS_MAX:
        raise ParameterError(f"there are {FOLLOWERS_MAX} pages that follow already; close some")
    reader = reader_of(context, topic, look)
    partitions = partitions_of(context, topic, look)
    bounds = await reader.bounds(partitions)

    at = {index: each.end for index, each in bounds.items()}

    async def events() -> AsyncIterator[str]:
        readers.followers += 1
        is_explained = False
        try:
            while True:
                try:
                    async for found, skipped in _new_records(reader, at, filter_):
                        is_explained = False
                        yield _event(
                            context.render.text(
                                request,
                                "_rows.html",
                                rows=await rows_of(context, topic.name or "", found),
                                topic=topic,
                                skipped=skipped,
                                is_fresh=True,
                            )
                            if found or skipped
                            else ""
                        )
                except HANDLED as error:
                    explanation = explain(error, context.settings.cluster)
                    passes = explanation.status == NOBODY_ANSWERS
                    yield _event(
                        ""
                        if passes and is_explained
                        else context.render.text(
                            request, "_follow_end.html", advice=explanation.advice, passes=passes
                        )
                    )
                    if not passes:
                        return
                    is_explained = True
                    await trio.sleep(FOLLOW_PAUSE_SECONDS)
        finally:
            readers.followers -= 1

    return StreamingResponse(
        events(), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _new_records(
    reader: RecordReader, at: dict[int, int], filter_: Filter
) -> AsyncIterator[tuple[list[FoundRecord], int]]:
    """New records as they come, the youngest first, and how many were passed over; nothing now
    and then, so that it is noticed when nobody listens any more.

    Args:
        at: where each partition is read from; it is kept as far as records have been yielded, so
            that whoever begins again after a failure misses none.
    """
    quiet = 0
    while True:
        now = await reader.bounds(at)
        begin = dict(at)
        skipped = 0
        for index, each in now.items():
            # What comes faster than anybody reads is passed over, and never piles up.
            newest = max(each.end - FOLLOW_ROWS_MAX, each.start)
            if filter_.is_empty and begin[index] < newest:
                skipped += newest - begin[index]
                begin[index] = newest
        found = await reader.forwards(now, begin, filter_, FOLLOW_ROWS_MAX)
        at |= found.positions
        if found.records or skipped:
            quiet = 0
            yield list(reversed(found.records)), skipped
        else:
            quiet += 1
            if quiet % KEEP_ALIVE_ROUNDS == 1:
                yield [], 0
        if found.is_at_end:
            await trio.sleep(FOLLOW_PAUSE_SECONDS)


def _event(html: str) -> str:
    """A server-sent event; a comment where there is nothing to say."""
    if not html:
        return ":\n\n"
    lines = html.replace("\r", "").split("\n")
    return "event: rows\n" + "".join(f"data: {line}\n" for line in lines) + "\n"


ROUTES = [
    Route("/topics/{topic}/records", browse, methods=["GET"]),
    Route("/topics/{topic}/follow", show_followed, methods=["GET"]),
    Route("/topics/{topic}/follow/events", follow, methods=["GET"]),
    Route("/topics/{topic}/records/{partition}/{offset}", show, methods=["GET"]),
    Route("/topics/{topic}/records/{partition}/{offset}/{what}", save, methods=["GET"]),
]
