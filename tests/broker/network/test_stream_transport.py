"""The stream transport over in-memory streams, in trio's virtual time."""

import itertools
import struct
from collections.abc import Callable

import trio
import trio.testing

from odradek.broker.network.connection import Connection
from odradek.broker.network.fair_order import PASS_SECONDS
from odradek.broker.network.stream_transport import StreamLink, StreamTransport
from odradek.protocol.errors import ProtocolError
from odradek.runtime.clock import SystemClock


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
        self.on_request: Callable[[bytes], None] = lambda payload: None
        self.send_parked, self.parked = trio.open_memory_channel[Request](10)

    def entry(self, connection: Connection, frame: memoryview) -> None:
        payload = bytes(frame)
        self.on_request(payload)
        if payload.startswith(b"bad"):
            raise ProtocolError("a bad request")
        request = Request(connection, payload)
        connection.unanswered.append(request)
        if payload.startswith(b"park"):
            connection.is_parked = True
            self.send_parked.send_nowait(request)
        else:
            request.answer()


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(p)) + p for p in payloads)


def start(
    nursery: trio.Nursery, dispatcher: Dispatcher, idle_seconds_max: float = float("inf")
) -> trio.StapledStream:
    client, server = trio.testing.memory_stream_pair()

    def make(peer: str, on_ready: Callable[[], None]) -> Connection:
        return Connection(dispatcher, "SSL", peer, 1 << 20, on_ready)

    transport = StreamTransport(lambda: None, SystemClock(), idle_seconds_max)
    nursery.start_soon(transport.run)
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
        nursery.cancel_scope.cancel()


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
        nursery.cancel_scope.cancel()


async def test_a_peer_that_breaks_the_protocol_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        client = start(nursery, Dispatcher())
        await client.send_all(framed(b"good", b"bad", b"never"))
        with trio.fail_after(5):
            assert await receive(client, len(framed(b"good"))) == framed(b"good")
            assert await client.receive_some() == b""
        nursery.cancel_scope.cancel()


async def test_silent_connections_are_closed(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        client = start(nursery, Dispatcher(), idle_seconds_max=600)
        started = trio.current_time()
        assert await client.receive_some() == b""
        assert trio.current_time() - started == 600
        nursery.cancel_scope.cancel()


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
        nursery.cancel_scope.cancel()


async def test_a_peer_that_does_not_read_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    client, server = trio.testing.lockstep_stream_pair()  # what is sent waits to be received
    transport = StreamTransport(lambda: None, SystemClock(), 600)

    def make(peer: str, on_ready: Callable[[], None]) -> Connection:
        return Connection(Dispatcher(), "SSL", peer, 1 << 20, on_ready)

    with trio.fail_after(2000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.run)
            async with trio.open_nursery() as serving:
                serving.start_soon(transport.serve, server, "memory:1", make)
                await client.send_all(framed(b"request"))
            nursery.cancel_scope.cancel()


async def test_many_that_flood_take_turns_with_one_that_does_not() -> None:
    dispatcher = Dispatcher()
    seconds = 0.0

    def on_request(payload: bytes) -> None:
        nonlocal seconds
        seconds += 0.0001

    dispatcher.on_request = on_request
    transport = StreamTransport(lambda: None, SystemClock(), seconds=lambda: seconds)

    def make(peer: str, on_ready: Callable[[], None]) -> Connection:
        return Connection(dispatcher, "SSL", peer, 1 << 20, on_ready)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.run)

        def connect() -> trio.StapledStream:
            client, server = trio.testing.memory_stream_pair()
            nursery.start_soon(transport.serve, server, "memory:1", make)
            return client

        good, floods = connect(), [connect() for _ in range(10)]
        for number, flood in enumerate(floods):
            await flood.send_all(framed(*[b"flood%d" % number] * 2000))
        with trio.fail_after(60):
            for _ in range(20):
                began = seconds
                await good.send_all(framed(b"good"))
                assert await receive(good, len(framed(b"good"))) == framed(b"good")
                assert seconds - began < 4 * PASS_SECONDS
        assert seconds < 10 * 2000 * 0.0001, "the floods were over"
        nursery.cancel_scope.cancel()


async def test_both_tasks_of_a_connection_may_wait_for_its_turn(
    autojump_clock: trio.testing.MockClock,
) -> None:
    now = itertools.count()
    transport = StreamTransport(lambda: None, SystemClock(), seconds=lambda: float(next(now)))
    _, server = trio.testing.memory_stream_pair()
    link = StreamLink(
        server,
        transport.turn_of,
        transport._order.newcomer(),
        float("inf"),
        lambda peer: None,
        lambda peer, unread_bytes: None,
    )
    link.connection = Connection(Dispatcher(), "SSL", "memory:1", 1 << 20, link.on_ready)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.run)
            await transport.turn_of(link)  # what may be taken at once is used up
            async with trio.open_nursery() as tasks:
                for _ in range(2):
                    tasks.start_soon(transport.turn_of, link)
            nursery.cancel_scope.cancel()


async def test_a_connection_that_is_held_takes_no_turns() -> None:
    """A frame that was put back waits for a release: of a throttle, or of an import."""
    held: list[Connection] = []
    turns = itertools.count()

    class Holding(Dispatcher):
        def entry(self, connection: Connection, frame: memoryview) -> None:
            if held:
                super().entry(connection, frame)
                return
            connection.put_back(frame)
            connection.hold()
            held.append(connection)

    dispatcher = Holding()
    transport = StreamTransport(lambda: None, SystemClock(), seconds=lambda: float(next(turns)))
    client, server = trio.testing.memory_stream_pair()

    def make(peer: str, on_ready: Callable[[], None]) -> Connection:
        return Connection(dispatcher, "SSL", peer, 1 << 20, on_ready)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.run)
            nursery.start_soon(transport.serve, server, "memory:1", make)
            await client.send_all(framed(b"late"))
            while not held:
                await trio.lowlevel.checkpoint()
            before = next(turns)
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            assert next(turns) - before < 10
            held[0].release()
            assert await receive(client, len(framed(b"late"))) == framed(b"late")
            nursery.cancel_scope.cancel()
