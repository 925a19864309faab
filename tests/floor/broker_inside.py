"""One real broker in this process, driven a pass at a time over pairs of sockets.

Only the network is left out: a request is written into one end of a pair, the other end is a
connection of the broker's own transport, and `run_pass` is called as the broker's loop calls it.
While requests are counted the clock stands still and no other task runs, so that the same
requests do the same work each time.
"""

from __future__ import annotations

import logging
import select
import socket
import struct
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from odradek.broker.broker import Broker
from odradek.broker.network.epoll_transport import MEASURED_TURNS_MIN
from odradek.broker.start import Environment, make_broker
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.headers import read_response_header, request_header
from odradek.protocol.messages import response_message
from odradek.runtime.clock import SystemClock

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
SETUP_SECONDS_MAX = 60
SOCKET_BUFFER_BYTES = 1 << 20
LISTENER = "PLAINTEXT"
BEGINNING_MS = 1_767_225_600_000
"""The clock's first wall time."""
HELD_AFTER_MS = 120_000
"""How much time has passed once it is held: more than the preparations take."""


class Clock(SystemClock):
    """A clock that begins at the same wall time in each run, goes on as any, and can be held.

    The wall time stands in batches, and so in their checksums, which Python keeps in more or
    fewer bytes.
    """

    def __init__(self) -> None:
        self._began_ms = super().monotonic_ms()
        self._held_ms: int | None = None

    def hold(self) -> None:
        """Let no more time pass."""
        self._held_ms = HELD_AFTER_MS

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        held_ms = self._held_ms
        if held_ms is not None:
            return BEGINNING_MS + held_ms
        return BEGINNING_MS + super().monotonic_ms() - self._began_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment."""
        held_ms = self._held_ms
        return super().monotonic_ms() if held_ms is None else self._began_ms + held_ms


class Client:
    """One connection to the broker inside; its other end is a link of the broker's transport."""

    def __init__(self, broker: Broker) -> None:
        self._socket, accepted = socket.socketpair()
        for sock in (self._socket, accepted):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        self._socket.setblocking(False)
        server: Any = broker.server
        self._transport = server._epoll
        make_connection = server._connection_factory(LISTENER)
        self._link = self._transport.adopt(accepted, "127.0.0.1:50000", make_connection)
        # How long a new connection's turns are measured would depend on how fast the machine is.
        self._link.measured_turns = MEASURED_TURNS_MIN
        self._events = [(self._link.fd, select.EPOLLIN)]
        self._received = bytearray()

    def frame(self, request: Any, version: int) -> bytes:
        """A request as it goes over the wire."""
        schema = type(request)
        header = request_header(schema.api_key, version, 7, "floor")
        body = b"".join([header, *map(bytes, schema.encoder(version)(request))])
        return struct.pack(">i", len(body)) + body

    def send(self, frame: bytes) -> None:
        """Hand the broker's end a frame; nothing is done with it yet."""
        assert self._socket.send(frame) == len(frame), "the pair of sockets is too small"

    def run_pass(self) -> None:
        """What the broker's loop does when this connection is readable."""
        self._transport.run_pass(self._events)

    def answer(self, api_key: int, version: int) -> Any:
        """The answer that has come, decoded.

        Raises:
            AssertionError: there is none, or it is not whole.
        """
        answer = self._take_frame()
        assert answer is not None, "there is no answer, or not all of it"
        return decoded(answer, api_key, version)

    @property
    def has_answer(self) -> bool:
        """Whether any of an answer has come."""
        self._receive()
        return bool(self._received)

    async def ask(self, request: Any, version: int) -> Any:
        """Send a request and wait for its answer, while the broker runs as it always does."""
        self.send(self.frame(request, version))
        with trio.fail_after(SETUP_SECONDS_MAX):
            while (answer := self._take_frame()) is None:
                await trio.lowlevel.wait_readable(self._socket)
        return decoded(answer, type(request).api_key, version)

    def close(self) -> None:
        """Close our end."""
        self._socket.close()

    def _receive(self) -> None:
        while True:
            try:
                part = self._socket.recv(1 << 20)
            except BlockingIOError:
                return
            assert part, "the broker closed the connection"
            self._received += part

    def _take_frame(self) -> bytes | None:
        self._receive()
        if len(self._received) < 4:
            return None
        end = 4 + int.from_bytes(self._received[:4], "big")
        if len(self._received) < end:
            return None
        frame = bytes(self._received[4:end])
        del self._received[:end]
        return frame


def decoded(frame: bytes, api_key: int, version: int) -> Any:
    """The message of an answer's frame."""
    _, position = read_response_header(frame, api_key, version)
    response, end = response_message(api_key).decoder(version)(frame, position)
    assert end == len(frame), "something trails the answer"
    return response


@asynccontextmanager
async def broker_inside(more_settings: Mapping[str, str]) -> AsyncIterator[tuple[Broker, Clock]]:
    """A broker on a temporary folder, ready; it is stopped at the end.

    Args:
        more_settings: of the broker.
    """
    logging.disable(logging.INFO)
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="odradek-floor-") as folder:
        settings = {**SETTINGS, "log.dirs": folder, "listeners": "PLAINTEXT://127.0.0.1:0"}
        settings |= more_settings
        config = BrokerConfig.from_sources({}, settings)
        broker = await make_broker(config, environment=Environment(clock))
        ready = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.run, lambda _: ready.set())
            with trio.fail_after(SETUP_SECONDS_MAX):
                await ready.wait()
            try:
                yield broker, clock
            finally:
                nursery.cancel_scope.cancel()
