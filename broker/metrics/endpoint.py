"""`/metrics`, `/health` and `/ready` over HTTP, on a listener of their own.

Whoever connects may be hostile: a request's head is bounded in bytes and time, so are the
connections that are open, and nothing of a request but its first line is looked at.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import trio

from ...config.definition import ConfigError
from ...config.listeners import PORT_MAX, Listener, parse_listeners
from ...security.tls.stream import CONNECTION_GONE
from ..network.accepting import accept_all
from ..network.listening import bind_listener
from .http_request import (
    FAILED,
    HEAD_BYTES_MAX,
    METRICS_PATH,
    TOO_LONG,
    TOO_MANY,
    TOO_SLOW,
    Refusal,
    head_is_complete,
    read_request,
    refuse,
)

logger = logging.getLogger(__name__)

HTTP_CONNECTIONS_MAX = 32
"""Prometheus opens one or two; more than this are refused with 503."""
REQUEST_SECONDS_MAX = 5.0
EXCHANGE_SECONDS_MAX = 30.0
"""How long a client may take to read its answer."""
TURN_AWAY_SECONDS_MAX = 0.1
LINGER_SECONDS_MAX = 1.0
LINGER_BYTES_MAX = 64 * 1024
"""What a client still sends is read away so far, or its system would drop the answer unread."""

_NAME = "METRICS"


class Pages(Protocol):
    """What an endpoint serves."""

    async def answer(self, path: str) -> list[bytes]:
        """The whole answer of HTTP to a request.

        Args:
            path: one of `PATHS`.
        """


class MetricsListener(NamedTuple):
    """Where metrics are to be had; bound, not yet served."""

    host: str
    port: int
    sockets: tuple[socket.socket, ...]

    @property
    def url(self) -> str:
        """What to give to Prometheus."""
        return f"http://{Listener(_NAME, '', self.host, self.port).address}{METRICS_PATH}"


def bind_metrics(address: str, count: int = 1) -> list[MetricsListener]:
    """Bind the endpoints of `count` brokers: HOST:PORT and the ports that follow.

    Args:
        address: of the first; port 0 takes a free one for each.
        count: how many.

    Raises:
        ConfigError: it is no address, or cannot be had.
    """
    try:
        (first,) = parse_listeners("--metrics", [f"{_NAME}://{address}"], {_NAME: "PLAINTEXT"})
    except ConfigError as error:
        raise ConfigError(f"--metrics {address}: write it as HOST:PORT.") from error
    if first.port and first.port + count - 1 > PORT_MAX:
        raise ConfigError(f"--metrics {address}: {count} brokers need {count} ports from there on.")
    bound: list[MetricsListener] = []
    try:
        for index in range(count):
            port = first.port + index if first.port else 0
            sockets = bind_listener(first._replace(port=port), "--metrics")
            port = sockets[0].getsockname()[1]
            bound.append(MetricsListener(first.host or "localhost", port, sockets))
    except ConfigError:
        close_all(bound)
        raise
    return bound


def close_all(listeners: Sequence[MetricsListener]) -> None:
    """Close sockets that will not be served."""
    for listener in listeners:
        for sock in listener.sockets:
            sock.close()


class MetricsEndpoint:
    """Serves metrics, and says how their broker is.

    Args:
        pages: what it serves.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._open = 0

    async def serve(self, listener: MetricsListener) -> None:
        """Answer scrapes until cancelled."""

        async def serve(sock: trio.socket.SocketType, _: str) -> None:
            await self.serve_stream(trio.SocketStream(sock))

        async with trio.open_nursery() as nursery:
            for sock in listener.sockets:
                nursery.start_soon(accept_all, sock, serve)

    async def serve_stream(self, stream: trio.abc.HalfCloseableStream) -> None:
        """Answer one connection's request, and close it."""
        if self._open >= HTTP_CONNECTIONS_MAX:
            await _turn_away(stream)
            return
        self._open += 1
        try:
            async with stream:
                with trio.move_on_after(EXCHANGE_SECONDS_MAX):
                    for part in await self._answer(stream):
                        await stream.send_all(part)
                    await _linger(stream)
        except CONNECTION_GONE:
            pass  # it does not wait for its answer
        finally:
            self._open -= 1

    async def _answer(self, stream: trio.abc.HalfCloseableStream) -> list[bytes]:
        head = b""
        with trio.move_on_after(REQUEST_SECONDS_MAX) as patience:
            while not head_is_complete(head):
                if len(head) > HEAD_BYTES_MAX:
                    return refuse(TOO_LONG)
                data = await stream.receive_some(HEAD_BYTES_MAX)
                if not data:
                    break
                head += data
        if patience.cancelled_caught:
            return refuse(TOO_SLOW)
        path = read_request(head)
        if isinstance(path, Refusal):
            return refuse(path)
        try:
            return await self._pages.answer(path)
        except Exception:
            logger.exception("%s could not be answered", path)
            return refuse(FAILED)


async def _turn_away(stream: trio.abc.HalfCloseableStream) -> None:
    """Close at once; the answer fits what the system takes without waiting."""
    with trio.move_on_after(TURN_AWAY_SECONDS_MAX), suppress(*CONNECTION_GONE):
        await stream.send_all(b"".join(refuse(TOO_MANY)))
    await trio.aclose_forcefully(stream)


async def _linger(stream: trio.abc.HalfCloseableStream) -> None:
    """Say that this was all, and let the client close."""
    await stream.send_eof()
    left = LINGER_BYTES_MAX
    with trio.move_on_after(LINGER_SECONDS_MAX):
        while left > 0:
            data = await stream.receive_some(left)
            if not data:
                return
            left -= len(data)
