"""Long requests of many connections: they wait for memory, in their order, and none for ever."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_quotas import ConnectionQuotas
from odradek.broker.network.epoll_transport import EpollTransport, Link
from odradek.broker.network.request_memory import (
    LOOK_AGAIN_MS,
    LOOK_FOR_STALLED_MS,
    RECEIVE_BYTES,
    RECEIVE_BYTES_WITHOUT_MEMORY,
    STALLED_MS,
    RequestMemory,
)
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers

FRAME_BYTES = 300_000
MEMORY_BYTES = 2 * FRAME_BYTES
"""Two frames reserve all of it, and their lengths' bytes: a third has to wait."""


class Bench:
    """A transport whose requests are noted, and kept until they are let go."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.memory = RequestMemory(MEMORY_BYTES, self.clock, self.timers)
        quotas = ConnectionQuotas(DynamicConfig(BrokerConfig.from_sources({})), self.clock)
        self.transport = EpollTransport(
            self.clock, self.timers, lambda: None, quotas, self.memory, seconds=lambda: 0.0
        )
        self.handled: list[tuple[str, memoryview]] = []
        self.sockets: list[socket.socket] = []

    def entry(self, connection: Connection, frame: memoryview) -> None:
        self.handled.append((connection.peer, frame))

    def connect(self, peer: str) -> tuple[socket.socket, Link]:
        def make(peer: str, on_ready: Callable[[], None]) -> Connection:
            # This stands for the dispatcher, of which a connection needs the entry only.
            connection = Connection(self, "PLAINTEXT", peer, 2 * FRAME_BYTES, on_ready)  # type: ignore[arg-type]
            connection.reader.reserve = partial(self.memory.reserve, connection)
            return connection

        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.sockets.append(theirs)
        return theirs, self.transport.adopt(ours, peer, make)

    def run(self, milliseconds: int = 0) -> None:
        """Do what is due and ready, until nothing is."""
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())
        idle_passes = 0
        while idle_passes < 2:  # the first one may have a socket watched again
            events = self.transport._epoll.poll(0)
            self.transport._now_ms = self.clock.monotonic_ms()
            self.transport.run_pass(events)
            idle_passes = 0 if events else idle_passes + 1

    def send(self, sock: socket.socket, data: memoryview | bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[sock.send(left[:65_536]) :]
            self.run()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.handled]


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.transport.close()
    for sock in bench.sockets:
        sock.close()


FRAME = struct.pack(">i", FRAME_BYTES) + b"x" * FRAME_BYTES
BEGINNING = FRAME[:10_000]


def test_a_request_waits_in_its_socket_until_there_is_memory(bench: Bench) -> None:
    (one, _), (two, _), (three, waiting) = (bench.connect(name) for name in "abc")
    for sock in (one, two):
        bench.send(sock, BEGINNING)
    assert bench.memory.used_bytes == 2 * len(FRAME)
    three.send(BEGINNING)
    bench.run(LOOK_AGAIN_MS)
    assert waiting.connection.reader.arrived_bytes <= RECEIVE_BYTES_WITHOUT_MEMORY

    bench.send(one, FRAME[10_000:])
    assert bench.names == ["a"]
    bench.run(LOOK_AGAIN_MS)
    assert bench.memory.used_bytes == 2 * len(FRAME), "its handler has it still"
    bench.handled.clear()
    bench.run(LOOK_AGAIN_MS)
    assert waiting.connection.reader.arrived_bytes == len(BEGINNING)
    bench.send(three, FRAME[10_000:])
    bench.send(two, FRAME[10_000:])
    assert bench.names == ["c", "b"]
    bench.handled.clear()
    assert bench.memory.used_bytes == 0
    assert bench.memory.receive_bytes == RECEIVE_BYTES


def test_short_requests_do_not_wait(bench: Bench) -> None:
    for name in "abc":
        bench.send(bench.connect(name)[0], BEGINNING)
    short, _ = bench.connect("short")
    request = struct.pack(">i", 3_000) + bytes(3_000)
    bench.send(short, request * 10)
    assert bench.names == ["short"] * 10


def test_those_that_wait_come_in_their_order_and_those_that_are_gone_do_not(bench: Bench) -> None:
    holders = [bench.connect(name)[0] for name in "ab"]
    for sock in holders:
        bench.send(sock, BEGINNING)
    waiting = [bench.connect(name) for name in "cdef"]
    for sock, _ in waiting:
        sock.send(BEGINNING)
        bench.run()
    bench.transport.close_link(waiting[0][1])
    for sock in holders:
        bench.send(sock, FRAME[10_000:])
    bench.handled.clear()
    bench.run(LOOK_AGAIN_MS)
    arrived = [link.connection.reader.arrived_bytes for _, link in waiting[1:]]
    assert arrived[:2] == [len(BEGINNING)] * 2
    assert arrived[2] <= RECEIVE_BYTES_WITHOUT_MEMORY


def test_one_that_does_not_go_on_is_closed_once_others_wait(bench: Bench) -> None:
    stalled, going_on = bench.connect("stalled"), bench.connect("going on")
    for sock, _ in (stalled, going_on):
        bench.send(sock, BEGINNING)
    bench.run(10 * STALLED_MS)
    assert not stalled[1].connection.is_closed, "nobody waits"
    waiting, link = bench.connect("waiting")
    waiting.send(BEGINNING)
    bench.run()
    bench.send(going_on[0], FRAME[10_000:290_000])
    for _ in range(STALLED_MS // LOOK_FOR_STALLED_MS):
        assert not stalled[1].connection.is_closed
        for _ in range(LOOK_FOR_STALLED_MS // LOOK_AGAIN_MS):
            bench.run(LOOK_AGAIN_MS)
    assert stalled[1].connection.is_closed
    bench.run(LOOK_AGAIN_MS)
    assert not going_on[1].connection.is_closed
    assert link.connection.reader.arrived_bytes == len(BEGINNING)


def test_a_brokers_request_does_not_wait(bench: Bench) -> None:
    for name in "abc":
        bench.send(bench.connect(name)[0], BEGINNING)
    sock, link = bench.connect("broker")
    link.connection.is_broker = True
    bench.send(sock, FRAME)
    assert bench.names == ["broker"]
