"""Turns of connections at a whole broker: what ends one, and how they alternate over TCP."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.broker.network.fair_order import requests_per_turn
from odradek.protocol import messages
from odradek.protocol.headers import request_header

if TYPE_CHECKING:
    from conftest import Bench

FLOODING = 8
FLOOD_REQUESTS = 3000
GOOD_REQUESTS = 30
REQUEST_SECONDS = 0.00005
NO_TOPICS = b"".join(map(bytes, messages.MetadataRequest.encoder(9)(messages.MetadataRequest())))


def framed(client_id: str) -> bytes:
    frame = request_header(3, 9, 7, client_id) + NO_TOPICS
    return struct.pack(">i", len(frame)) + frame


async def test_a_request_that_is_answered_too_late_ends_its_turn(bench: Bench) -> None:
    connection = bench.client.connection
    frames = [memoryview(bytearray(framed("test")[4:])) for _ in range(3)]
    connection.start_turn(bench.broker.clock.monotonic_ms())
    connection.process(frames)
    answered = len(connection.output)
    assert connection.has_used_its_turn
    assert connection.backlog
    connection.output.clear()
    connection.note_sent()
    connection.start_turn()
    connection.process_backlog()
    assert not connection.backlog
    assert len(connection.output) == 2 * answered


async def test_a_good_clients_requests_come_between_few_of_each_flooding_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled: list[str] = []
    # A turn takes as long as what it handles: a collection of garbage in the good client's turn
    # would count as its own time, and others would rightly go first for as long.
    monkeypatch.setattr(
        bench.broker.server._epoll, "_seconds", lambda: len(handled) * REQUEST_SECONDS
    )

    def on_request(request: Any) -> bool:
        handled.append(request.client_id)
        return False

    bench.broker.dispatcher.use_hooks(on_request=on_request)
    (bound,) = bench.broker.server.bound

    async def flood(number: int) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", bound.port)
        async with stream, trio.open_nursery() as both:

            async def read() -> None:
                async for _ in stream:
                    pass

            both.start_soon(read)
            await stream.send_all(framed(f"flood-{number}") * FLOOD_REQUESTS)

    good = await trio.open_tcp_stream("127.0.0.1", bound.port)
    sent_at: list[int] = []
    with trio.fail_after(60):
        async with good, trio.open_nursery() as nursery:
            for number in range(FLOODING):
                nursery.start_soon(flood, number)
            while len(set(handled)) < FLOODING:
                await trio.lowlevel.checkpoint()
            for _ in range(GOOD_REQUESTS):
                sent_at.append(len(handled))
                await good.send_all(framed("good"))
                answer = b""
                while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4]):
                    answer += await good.receive_some()
            nursery.cancel_scope.cancel()
    good_at = [index for index, client_id in enumerate(handled) if client_id == "good"]
    assert len(good_at) == GOOD_REQUESTS
    between = [
        sum(client_id == f"flood-{number}" for client_id in handled[sent:served])
        for sent, served in zip(sent_at, good_at, strict=True)
        for number in range(FLOODING)
    ]
    beside = handled[good_at[0] : good_at[-1]]
    assert len(beside) >= 2 * GOOD_REQUESTS, "the floods are over, or have not begun"
    assert max(between) <= 2 * requests_per_turn(FLOODING)
