"""Brokers that answer as a test tells them, over in-memory streams and trio's own clock.

For what a real broker would not do: answers out of order, garbage, silence, answers from a
cluster of a moment ago. Use them with pytest-trio's `nursery` and, for waits, its
`autojump_clock`.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import trio
import trio.testing

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.frames import FrameReader
from odradek.protocol.headers import read_request_header, read_request_start, response_header
from odradek.protocol.messages import ApiVersionsResponse, MetadataResponse, request_message

from .client_parts import answer as metadata_answer

LENGTH = struct.Struct(">i")
FRAME_BYTES_MAX = 1 << 20

SERVED = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
}


class Received(NamedTuple):
    """A request that came."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any


class Silence:
    """Returned by an answer that will not come."""


SILENCE = Silence()
Answer = Callable[[Received], Any]
"""Returns a response, raw bytes to send in the place of a frame, None for a request that has no
answer, `SILENCE`, or an awaitable of one of these."""


def framed(*parts: bytes) -> bytes:
    """A frame of these."""
    data = b"".join(parts)
    return LENGTH.pack(len(data)) + data


def encoded(received: Received, response: Any, correlation_id: int | None = None) -> bytes:
    """A response as it crosses the network."""
    header = response_header(
        received.api_key,
        received.version,
        received.correlation_id if correlation_id is None else correlation_id,
    )
    return framed(header, *map(bytes, type(response).encoder(received.version)(response)))


def api_versions(served: Mapping[ApiKey, tuple[int, int]] = SERVED) -> ApiVersionsResponse:
    """The answer of a broker that serves these."""
    make = ApiVersionsResponse.ApiVersion
    return ApiVersionsResponse(
        api_keys=[
            make(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in served.items()
        ]
    )


class ScriptedBroker:
    """One broker; `answers` says by API key what it does with a request."""

    def __init__(self, node_id: int = 1) -> None:
        self.node_id = node_id
        self.host = f"broker-{node_id}"
        self.port = 9092
        self.answers: dict[int, Answer] = {ApiKey.API_VERSIONS: lambda received: api_versions()}
        self.requests: list[Received] = []
        self.connections = 0
        self._streams: set[trio.abc.Stream] = set()
        self._news = trio.Event()

    def requests_of(self, api_key: int) -> list[Any]:
        """The requests of one API that came so far."""
        return [received.body for received in self.requests if received.api_key == api_key]

    async def wait_for_request(self, api_key: int, times: int = 1) -> Any:
        """Wait until so many requests of an API came; returns the last of them."""
        while len(self.requests_of(api_key)) < times:
            await self._news.wait()
        return self.requests_of(api_key)[times - 1]

    async def disconnect(self) -> None:
        """Close all connections."""
        for stream in list(self._streams):
            await trio.aclose_forcefully(stream)

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Answer what comes over a stream until it ends."""
        self.connections += 1
        self._streams.add(stream)
        reader = FrameReader(FRAME_BYTES_MAX)
        try:
            async with stream:
                async for data in stream:
                    for frame in reader.receive(memoryview(bytes(data))):
                        await self._handle(stream, frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self._streams.discard(stream)

    async def _handle(self, stream: trio.abc.Stream, frame: memoryview) -> None:
        api_key, version, _ = read_request_start(frame)
        correlation_id, client_id, position = read_request_header(frame)
        body, end = request_message(api_key).decoder(version)(frame, position)
        assert end == len(frame), "bytes are left over after a request"
        received = Received(api_key, version, correlation_id, client_id, body)
        self.requests.append(received)
        self._news.set()
        self._news = trio.Event()
        answer = self.answers[api_key](received)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, bytes):
            await stream.send_all(answer)
        elif answer is not None and answer is not SILENCE:
            await stream.send_all(encoded(received, answer))


class ScriptedCluster:
    """Brokers that are one cluster, and the network to reach them by.

    `topics` and `controller` are what Metadata answers; `refusing` and `hanging` hold the node
    ids that cannot be connected to.
    """

    def __init__(self, nursery: trio.Nursery, *node_ids: int) -> None:
        self.brokers = {node_id: ScriptedBroker(node_id) for node_id in node_ids or (1, 2)}
        self.topics: dict[str, MetadataResponse.MetadataResponseTopic] = {}
        self.alive = list(self.brokers)
        self.controller = self.alive[0]
        self.refusing: set[int] = set()
        self.hanging: set[int] = set()
        self.attempts: list[int] = []
        self._nursery = nursery
        for broker in self.brokers.values():
            broker.answers[ApiKey.METADATA] = self.metadata

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{broker.host}:{broker.port}" for broker in self.brokers.values())

    def metadata(self, received: Received) -> MetadataResponse:
        """What brokers answer to Metadata."""
        requested = received.body.topics
        is_all = requested is None or (received.version == 0 and not requested)
        names = self.topics if is_all else [topic.name for topic in requested]
        return metadata_answer(
            *(self.topics[name] for name in names if name in self.topics),
            nodes=self.alive,
            controller=self.controller,
        )

    def answer_all(self, api_key: int, answer: Answer) -> None:
        """Let all brokers answer an API so."""
        for broker in self.brokers.values():
            broker.answers[api_key] = answer

    def metadata_requests(self) -> int:
        """How often any broker got a Metadata request."""
        return sum(len(broker.requests_of(ApiKey.METADATA)) for broker in self.brokers.values())

    async def connect(self, host: str, port: int) -> trio.abc.Stream:
        """Open a stream, as `trio.open_tcp_stream` does."""
        await trio.lowlevel.checkpoint()
        broker = next((b for b in self.brokers.values() if (b.host, b.port) == (host, port)), None)
        self.attempts.append(-1 if broker is None else broker.node_id)
        if broker is None or broker.node_id in self.refusing:
            raise ConnectionRefusedError(f"nobody listens at {host}:{port}")
        if broker.node_id in self.hanging:
            await trio.sleep_forever()
        ours, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(broker.serve, theirs)
        return ours
