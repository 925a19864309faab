"""Producing: a record from a form, or those of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import trio
from starlette.routing import Route

from ...client.producer.batch_producer import BatchProducer
from ...client.producer.partitioner import partition_of_key
from ...client.producer.producer import Producer
from ...client.producer.settings import ProducerSettings
from ...common.record_json import OutgoingRecord, RecordJsonError, record_from_json
from ..context import context_of
from ..forms import FILE_BYTES_MAX, FORM_BYTES_MAX, done, read_file_form, read_form
from ..parameters import ParameterError, Parameters
from ..rendering import make_url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ..records.schema_values import Part, SchemaValues

HEADERS_MAX: Final = 100
DELIVERY_MS_MAX: Final = 10_000
FILE_DELIVERY_MS_MAX: Final = 30_000
FILE_RECORDS_MAX: Final = 100_000
FILE_BATCH_BYTES: Final = 128 << 10


async def show(request: Request) -> Response:
    """The form."""
    context = context_of(request)
    topic = await context.cluster.topic(request.path_params["topic"])
    return context.render.page(
        request,
        "produce.html",
        section="topics",
        title=topic.name,
        topic=topic,
        tab="produce",
        written=Parameters(request.query_params).optional_number("written"),
        file_bytes_max=FILE_BYTES_MAX,
        key_schema=context.schemas.keys.source(topic.name or ""),
        schema=context.schemas.values.source(topic.name or ""),
    )


async def send(request: Request) -> Response:
    """Write the record, and show it where it lies."""
    form = await read_form(request)
    context = context_of(request)
    name = request.path_params["topic"]
    topic = await context.cluster.topic(name)
    key, value = None, None
    if not form.flag("no_key"):
        key = await _part_of(form, "key", context.schemas.keys, name)
    if not form.flag("tombstone"):
        value = await _part_of(form, "value", context.schemas.values, name)
    count = len(topic.partitions)
    partition = form.optional_number("partition", 0, count - 1)
    if partition is None:
        partition = (
            context.client.random.randrange(count) if key is None else partition_of_key(key, count)
        )
    producer = BatchProducer(context.client, delivery_timeout_ms=DELIVERY_MS_MAX)
    record = (key, value, context.client.clock.now_ms(), headers_of(form.text("headers", "")))
    written = await producer.send(name, partition, [record])
    return done(f"/topics/{quote(name, safe='')}/records/{partition}/{written.base_offset}")


async def send_file(request: Request) -> Response:
    """Write the records of a file, if all of its lines are such."""
    form, content = await read_file_form(request, "file")
    context = context_of(request)
    name = request.path_params["topic"]
    topic = await context.cluster.topic(name)
    by_key = form.choice("partitions", ("lines", "keys")) == "keys"
    records = await trio.to_thread.run_sync(records_of, content)
    count = len(topic.partitions)
    for record in () if by_key else records:
        if record.partition is not None and record.partition >= count:
            raise ParameterError(
                f"a line is for partition {record.partition}, and the topic has {count}, from 0; "
                "have the keys choose the partition, whatever the lines say"
            )
    settings = ProducerSettings(
        batch_size=FILE_BATCH_BYTES,
        max_request_size=FILE_BYTES_MAX,
        delivery_timeout_ms=FILE_DELIVERY_MS_MAX,
    )
    async with Producer(context.client, settings) as producer:
        for record in records:
            await producer.send(
                name,
                record.value,
                record.key,
                None if by_key else record.partition,
                record.headers,
                record.timestamp_ms,
            )
        await producer.flush()
    return done(make_url(f"/topics/{quote(name, safe='')}/produce", written=len(records)))


def records_of(content: bytes) -> list[OutgoingRecord]:
    """The records in a file of JSON lines, as `odradek consume --format json` writes them.

    Raises:
        ParameterError: a line is none, or there are none, or too many.
    """
    lines = content.splitlines()
    if len(lines) > FILE_RECORDS_MAX:
        raise ParameterError(f"a file has at most {FILE_RECORDS_MAX:,} lines here")
    try:
        records = [
            record_from_json(line, number) for number, line in enumerate(lines, 1) if line.strip()
        ]
    except RecordJsonError as error:
        raise ParameterError(f"{error}. Nothing was written") from error
    if not records:
        raise ParameterError("there is no record in the file")
    return records


async def _part_of(form: Parameters, part: Part, schemas: SchemaValues, topic: str) -> bytes:
    """The bytes of a record's key or value, which may be written as JSON that a schema encodes.

    Raises:
        ParameterError: a field is not what it should be.
        SchemaError, ValueEncodingError: the schema does not allow it, or is not to be had.
    """
    if form.text(f"{part}_as") == "schema":
        return await schemas.encode(topic, form.text(part, "", FORM_BYTES_MAX))
    return payload_of(form, part)


def payload_of(form: Parameters, name: str) -> bytes:
    """The bytes of a field, which may be written in hexadecimal. Raises ParameterError."""
    # A browser sends line ends of text areas as CR LF, whatever was typed.
    text = form.text(name, "", FORM_BYTES_MAX).replace("\r\n", "\n")
    if form.choice(f"{name}_as", ("text", "hex")) == "text":
        return text.encode(errors="surrogatepass")
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ParameterError(
            f"the {name} is not hexadecimal; write it as 00 ff 7b, two digits for each byte"
        ) from error


def headers_of(text: str) -> list[tuple[str, bytes | None]]:
    """Headers, one NAME=VALUE on each line. Raises ParameterError."""
    headers: list[tuple[str, bytes | None]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise ParameterError(f"a header is written as NAME=VALUE, not {line[:80]!r}")
        headers.append((name.strip(), value.encode()))
    if len(headers) > HEADERS_MAX:
        raise ParameterError(f"a record has at most {HEADERS_MAX} headers here")
    return headers


ROUTES = [
    Route("/topics/{topic}/produce", show, methods=["GET"]),
    Route("/topics/{topic}/produce", send, methods=["POST"]),
    Route("/topics/{topic}/produce-file", send_file, methods=["POST"]),
]
