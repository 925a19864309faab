"""Producing a record from a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.routing import Route

from ...client.producer.batch_producer import BatchProducer
from ...client.producer.partitioner import partition_of_key
from ..context import context_of
from ..forms import FORM_BYTES_MAX, done, read_form
from ..parameters import ParameterError, Parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

HEADERS_MAX: Final = 100
DELIVERY_MS_MAX: Final = 10_000


async def show(request: Request) -> Response:
    """The form."""
    context = context_of(request)
    topic = await context.cluster.topic(request.path_params["topic"])
    return context.render.page(
        request, "produce.html", section="topics", title=topic.name, topic=topic, tab="produce"
    )


async def send(request: Request) -> Response:
    """Write the record, and show it where it lies."""
    form = await read_form(request)
    context = context_of(request)
    name = request.path_params["topic"]
    topic = await context.cluster.topic(name)
    key = None if form.flag("no_key") else payload_of(form, "key")
    value = None if form.flag("tombstone") else payload_of(form, "value")
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
]
