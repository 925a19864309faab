"""Serving a TLS listener: after its handshake a connection is one like any other."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...security.tls.stream import HandshakeError, TlsStream
from .connection import Connection
from .epoll_transport import ConnectionFactory
from .stream_transport import StreamTransport
from .tls_handshakes import Handshakes

if TYPE_CHECKING:
    from ...security.tls.listeners import ListenerTls
    from .server import ListenerTraffic

logger = logging.getLogger(__name__)


async def serve_tls(
    sock: socket.socket,
    tls_of: Callable[[str], ListenerTls],
    listener_name: str,
    make_connection: ConnectionFactory,
    transport: StreamTransport,
    traffic: ListenerTraffic,
    seconds_max: float,
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
            if principal is not None:
                connection.principal = principal
            return connection

        traffic.streams += 1
        try:
            await transport.serve(stream, peer, make)
        finally:
            traffic.streams -= 1

    handshakes = Handshakes(lambda: tls_of(listener_name).server, serve, seconds_max)
    await handshakes.accept_all(sock)
