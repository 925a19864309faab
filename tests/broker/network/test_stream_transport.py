"""The stream transport over in-memory streams, in trio's virtual time."""

import struct
from collections.abc import Callable

import trio
import trio.testing

from odradek.broker.network.connection import Connection
from odradek.broker.network.stream_transport import StreamTransport
from odradek.protocol.errors import ProtocolError


class Request:
    """Stands for a request: its answer is its own bytes, framed."""

    def __init__(self, connection: Connection, payload: bytes) -> None:
        self.connection = connection
        self.payload = payload
        self.buffers: list[bytes] | None = None

    def answer(self) -> None:
        self.buffers = [struct.pack(">i", len(self.payload)), self.payload]
        self.connection.note_answered()


class Dispatcher:
    """Echoes; parks what begins with "park", and hands it to whoever waits for it."""

    def __init__(self) -> None:
        self.send_parked, self.parked = trio.open_memory_channel[Request](10)

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        payload = bytes(frame)
        if payload.startswith(b"bad"):
            raise ProtocolError("a bad request")
        request = Request(connection, payload)
        connection.unanswered.append(request)
        if payload.startswith(b"park"):
            connection.is_parked = True
            self.send_parked.send_nowait(request)
        else:
            connection.note_handled()
            request.answer()


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(p)) + p for p in payloads)


def start(
    nursery: trio.Nursery, dispatcher: Dispatcher, idle_seconds_max: float = float("inf")
) -> trio.StapledStream:
    client, server = trio.testing.memory_stream_pair()

    def make(peer: str, on_ready: Callable[[], None]) -> Connection:
        return Connection(dispatcher, "SSL", peer, 1 << 20, on_ready)

    transport = StreamTransport(lambda: None, idle_seconds_max)
    nursery.start_soon(transport.serve, server, "memory:1", make)
    return client


async def receive(stream: trio.abc.Stream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = await stream.receive_some()
        assert part, "the connection was closed"
        received += part
    return received


async def test_pipelined_requests_are_answered_in_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stream = framed(b"one", b"two", b"three")
    async with trio.open_nursery() as nursery:
        client = start(nursery, Dispatcher())
        await client.send_all(stream)
        with trio.fail_after(5):
            assert await receive(client, len(stream)) == stream
        await client.aclose()


async def test_frames_behind_a_parked_request_wait_for_its_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stream = framed(b"park", b"behind", b"park too", b"last")
    dispatcher = Dispatcher()
    async with trio.open_nursery() as nursery:
        client = start(nursery, dispatcher)
        await client.send_all(stream)
        with trio.fail_after(60):
            first = await dispatcher.parked.receive()
            with trio.move_on_after(30) as waiting:
                await client.receive_some()
            assert waiting.cancelled_caught
            first.answer()
            (await dispatcher.parked.receive()).answer()
            assert await receive(client, len(stream)) == stream
        await client.aclose()


async def test_a_peer_that_breaks_the_protocol_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        client = start(nursery, Dispatcher())
        await client.send_all(framed(b"good", b"bad", b"never"))
        with trio.fail_after(5):
            assert await receive(client, len(framed(b"good"))) == framed(b"good")
            assert await client.receive_some() == b""


async def test_silent_connections_are_closed(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        client = start(nursery, Dispatcher(), idle_seconds_max=600)
        started = trio.current_time()
        assert await client.receive_some() == b""
        assert trio.current_time() - started == 600


async def test_a_peer_that_sends_no_more_is_still_answered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stream = framed(b"park", *[b"count%d" % number for number in range(200)])
    dispatcher = Dispatcher()
    async with trio.open_nursery() as nursery:
        client = start(nursery, dispatcher)
        await client.send_all(stream)
        await client.send_eof()
        with trio.fail_after(60):
            (await dispatcher.parked.receive()).answer()
            assert await receive(client, len(stream)) == stream
            assert await client.receive_some() == b""
