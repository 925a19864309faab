"""A whole broker in the test's own process, run as long as a test acts, and a client of it."""

from __future__ import annotations

import select
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import trio

from odradek.broker.broker import Broker
from odradek.broker.start import make_broker
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_response_header, request_header
from odradek.protocol.messages import response_message

SECONDS_MAX = 60


async def make(folder: Path, settings: Mapping[str, str] | None = None) -> Broker:
    """A broker that is not started yet.

    Args:
        folder: its log directory.
        settings: further ones.
    """
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder),
        "offsets.topic.num.partitions": "1",
        **(settings or {}),
    }
    return await make_broker(BrokerConfig.from_sources({}, given))


async def run_with(broker: Broker, act: Callable[[], Awaitable[None]]) -> None:
    """Run a broker, act as soon as it is ready, and stop it."""
    ready = trio.Event()
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.run, lambda _: ready.set())
            await ready.wait()
            await act()
            nursery.cancel_scope.cancel()


class Client:
    """Sends requests over TCP, and looks what has been answered."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    @classmethod
    async def to(cls, broker: Broker) -> Client:
        """Connect to a broker whose port is bound."""
        return cls(await trio.open_tcp_stream("127.0.0.1", broker.server.bound[0].port))

    async def call(self, version: int, request: Any) -> Any:
        """Send a request, and receive its answer."""
        await self.send((version, request))
        return await self.receive(type(request).api_key, version)

    async def close(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def send(self, *requests: tuple[int, Any]) -> None:
        """Send requests, each with its version, in one piece."""
        frames = b""
        for version, request in requests:
            key = type(request).api_key
            body = type(request).encoder(version)(request)
            frame = b"".join([request_header(key, version, key, "test"), *map(bytes, body)])
            frames += struct.pack(">i", len(frame)) + frame
        await self._stream.send_all(frames)

    async def receive(self, api_key: ApiKey, version: int) -> Any:
        """The next answer, which is one to a request of this API."""
        (size,) = struct.unpack(">i", await self._exactly(4))
        frame = await self._exactly(size)
        correlation_id, position = read_response_header(frame, api_key, version)
        assert correlation_id == api_key
        return response_message(api_key).decoder(version)(frame, position)[0]

    def has_answer(self) -> bool:
        """Whether something has come."""
        readable, _, _ = select.select([self._stream.socket], [], [], 0)
        return bool(readable)

    async def _exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            part = await self._stream.receive_some(size - len(received))
            assert part, "the broker closed the connection"
            received += part
        return received
