"""Connections over trio streams, TLS's for example, as the quotas of connections count them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from ...runtime.clock import Clock
from .connection import Connection
from .connection_quotas import ConnectionQuotas, ConnectionThrottled, TooManyConnections, host_of

ServeSocket: TypeAlias = Callable[[trio.socket.SocketType, str], Awaitable[None]]
"""Serves an accepted socket, whose peer is named, to its end."""


class CountedStream:
    """One accepted connection."""

    def __init__(self, host: str, listener_name: str, now_ms: int) -> None:
        self.host = host
        self.listener_name = listener_name
        self.accepted_ms = now_ms
        self.last_used_ms = -1
        self.connection: Connection | None = None
        self.scope = trio.CancelScope()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way and no answer unsent."""
        connection = self.connection
        return connection is None or not (
            connection.unanswered or connection.output or connection.backlog
        )

    @property
    def has_logged_in(self) -> bool:
        """Whether its client has logged in, or need not."""
        return self.connection is not None and self.connection.has_logged_in

    def evict(self) -> None:
        """Close it."""
        self.scope.cancel()


class CountedStreams:
    """The connections of one listener.

    Args:
        quotas: where they are counted.
        listener_name: the listener's.
        clock: the time.
    """

    def __init__(self, quotas: ConnectionQuotas, listener_name: str, clock: Clock) -> None:
        self._quotas = quotas
        self._listener_name = listener_name
        self._clock = clock
        self._by_peer: dict[str, CountedStream] = {}
        self._slot_free = trio.Event()
        quotas.on_slot.append(lambda: self._slot_free.set())

    async def wait_for_slot(self) -> None:
        """Wait until a connection may be accepted."""
        while not self._quotas.has_slot(self._listener_name):
            self._slot_free = trio.Event()
            again_ms = self._quotas.accept_again_ms(self._listener_name)
            with trio.move_on_after(again_ms / 1000):
                await self._slot_free.wait()

    def make_way(self) -> bool:
        """Close one, since no descriptor is left; returns whether there was one."""
        return self._quotas.make_way()

    async def serve(self, serve: ServeSocket, sock: trio.socket.SocketType, peer: str) -> None:
        """Serve an accepted connection to its end, unless it is one too many."""
        stream = CountedStream(host_of(peer), self._listener_name, self._clock.monotonic_ms())
        try:
            self._quotas.admit(stream, sock.fileno())
        except ConnectionThrottled as throttled:
            self._quotas.throttled += 1
            try:
                await trio.sleep(throttled.close_in_ms / 1000)
            finally:
                self._quotas.throttled -= 1
            return
        except TooManyConnections:
            return
        self._by_peer[peer] = stream
        try:
            with stream.scope:
                await serve(sock, peer)
        finally:
            del self._by_peer[peer]
            self._quotas.release(stream)

    def note_connection(self, connection: Connection) -> None:
        """What is served over a stream from now on."""
        stream = self._by_peer.get(connection.peer)
        if stream is not None:
            stream.connection = connection

    def note_unread(self, peer: str, unread_bytes: int) -> None:
        """A peer is being sent answers, of which so much is left; it has taken all before that."""
        stream = self._by_peer.get(peer)
        if stream is None:
            return
        if unread_bytes:
            self._quotas.note_unread(stream, unread_bytes, took_some=True)
        else:
            self._quotas.note_all_read(stream)

    def note_used(self, peer: str) -> None:
        """Something was received from a peer."""
        stream = self._by_peer.get(peer)
        if stream is not None:
            stream.last_used_ms = self._clock.monotonic_ms()
