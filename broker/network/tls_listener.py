"""TLS listeners: each connection must come through its handshake in time, and is then served.

A handshake costs the broker more than the client, and one that is not gone on with would hold its
place for ever. So each has a deadline, and only so many are under way at once; the oldest makes
way for a new one, since the slow ones are not those to wait for.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from ssl import SSLContext
from typing import TYPE_CHECKING

import trio

from ...security.tls.stream import HandshakeError, TlsStream
from .accepting import accept_all
from .connection import Connection, ConnectionFactory, ListenerTraffic
from .counted_streams import CountedStreams
from .stream_transport import StreamTransport

if TYPE_CHECKING:
    from ...security.tls.listeners import ListenerTls

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS_MAX = 30
"""Kafka's clients wait no longer (`socket.connection.setup.timeout.max.ms`)."""
HANDSHAKES_MAX = 512
"""So many unfinished ones a listener has at once."""
LET_READ_SECONDS = 1
LET_READ_BYTES = 64 * 1024

Serve = Callable[[TlsStream, str], Awaitable[None]]
"""Serves a connection, whose peer is named, to its end."""


class Handshakes:
    """The connections of one TLS listener, from their acceptance on.

    Args:
        context: how TLS is spoken at this moment.
        serve: what becomes of a connection after its handshake.
        seconds_max: for a handshake.
    """

    def __init__(
        self,
        context: Callable[[], SSLContext],
        serve: Serve,
        seconds_max: float = HANDSHAKE_SECONDS_MAX,
    ) -> None:
        self._context = context
        self._serve = serve
        self._seconds_max = min(seconds_max, HANDSHAKE_SECONDS_MAX)
        self._under_way: dict[trio.CancelScope, None] = {}

    async def accept_all(
        self, listening: socket.socket, counted: CountedStreams | None = None
    ) -> None:
        """Accept from a listening socket until cancelled."""
        await accept_all(listening, self._run, counted)

    async def _run(self, sock: trio.socket.SocketType, peer: str) -> None:
        """One connection, to its end."""
        plain = trio.SocketStream(sock)
        stream = TlsStream(plain, self._context())
        if await self._shake_hands(stream, peer):
            await self._serve(stream, peer)
        else:
            await _let_read(plain)

    async def _shake_hands(self, stream: TlsStream, peer: str) -> bool:
        """Whether it came through."""
        if len(self._under_way) >= HANDSHAKES_MAX:
            oldest = next(iter(self._under_way))
            del self._under_way[oldest]
            oldest.cancel()
        scope = trio.CancelScope(deadline=trio.current_time() + self._seconds_max)
        self._under_way[scope] = None
        reason = "it did not come to its end in time"
        try:
            with scope:
                await stream.do_handshake()
                return True
        except HandshakeError as error:
            reason = str(error)
        finally:
            self._under_way.pop(scope, None)
        logger.warning("the TLS handshake with %s failed: %s", peer, reason)
        return False


async def _let_read(stream: trio.SocketStream) -> None:
    """Give a refused peer time to read why.

    A client of TLSv1.3 sends its first request before it hears that it is refused; closing with
    that unread resets the connection, and takes the reason with it.
    """
    with trio.move_on_after(LET_READ_SECONDS):
        await stream.send_eof()
        left = LET_READ_BYTES
        while left > 0:
            data = await stream.receive_some(left)
            if not data:
                return
            left -= len(data)


async def serve_tls(
    sock: socket.socket,
    tls_of: Callable[[str], ListenerTls],
    listener_name: str,
    make_connection: ConnectionFactory,
    transport: StreamTransport,
    traffic: ListenerTraffic,
    seconds_max: float,
    counted: CountedStreams,
) -> None:
    """Accept and serve until cancelled.

    Args:
        sock: listens.
        tls_of: how a listener speaks TLS, by its name, at the moment.
        listener_name: this one's.
        make_connection: makes the broker's side of a connection.
        transport: drives it.
        traffic: where connections are counted.
        seconds_max: for a handshake, if it is less than that has anyway.
        counted: counts the connections.
    """

    async def serve(stream: TlsStream, peer: str) -> None:
        tls = tls_of(listener_name)
        certificate = stream.peer_certificate if tls.client_authentication != "none" else None
        try:
            principal = None if certificate is None else tls.principal_of(certificate)
        except HandshakeError as error:
            logger.warning("the connection from %s is refused: %s", peer, error)
            return

        def make(peer: str, on_ready: Callable[[], None]) -> Connection:
            connection = make_connection(peer, on_ready)
            if principal is not None and connection.authenticator is None:
                connection.principal = principal
            return connection

        traffic.streams += 1
        try:
            await transport.serve(stream, peer, make, counted.note_used, counted.note_unread)
        finally:
            traffic.streams -= 1

    handshakes = Handshakes(lambda: tls_of(listener_name).server, serve, seconds_max)
    await handshakes.accept_all(sock, counted)
