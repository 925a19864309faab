"""The listeners of a broker, and the transports that drive their connections.

Plain listeners go to the epoll transport where the platform has epoll; everything else is
served over trio streams.
"""

from __future__ import annotations

import errno
import select
import socket
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from ...common.named_tuple import NamedTuple
from ...config.listeners import TLS_PROTOCOLS, Listener
from ...runtime.clock import Clock
from ...runtime.supervisor import Supervisor
from ...runtime.timers import Timers
from ..request.dispatch import Dispatcher
from .accepting import accept_all
from .connection import Connection, ConnectionFactory, ListenerTraffic
from .connection_quotas import ConnectionQuotas
from .counted_streams import CountedStreams
from .epoll_transport import EpollTransport, run_due_timers
from .listening import bind_listener
from .request_memory import REQUEST_BYTES_MAX, RequestMemory
from .stream_transport import StreamTransport

if TYPE_CHECKING:
    from ...security.authenticator.sasl_listeners import SaslListeners
    from ...security.tls.listeners import TlsListeners


class ServerSettings(NamedTuple):
    """What the server needs of the configuration."""

    listeners: tuple[Listener, ...]
    frame_bytes_max: int
    idle_ms_max: int
    login_bytes_max: int = 524_288
    request_bytes_max: int = REQUEST_BYTES_MAX


class BoundListener(NamedTuple):
    """A listener and the sockets it got; several where a host has two address families."""

    listener: Listener
    sockets: tuple[socket.socket, ...]

    @property
    def port(self) -> int:
        """The port all its sockets are bound to."""
        return int(self.sockets[0].getsockname()[1])


class Server:
    """Serves one broker's listeners.

    Args:
        settings: listeners and limits.
        dispatcher: where frames go.
        clock, timers: the broker's.
        flush: publishes what handlers staged and completes what waited.
        supervisor: begins again what serves a listener, should it fail.
        quotas: say how many connections there may be.
        tls: how the listeners that speak TLS do it; None if none does.
        sasl: likewise, of those that speak SASL.
        has_epoll: whether plain listeners go to the epoll transport.

    Attributes:
        refuses: for faults, and None otherwise: whether the connection of a peer is to be reset
            in place of being served.
    """

    def __init__(
        self,
        settings: ServerSettings,
        dispatcher: Dispatcher,
        clock: Clock,
        timers: Timers,
        flush: Callable[[], None],
        supervisor: Supervisor,
        quotas: ConnectionQuotas,
        tls: TlsListeners | None = None,
        sasl: SaslListeners | None = None,
        *,
        has_epoll: bool = hasattr(select, "epoll"),
    ) -> None:
        self.bound: list[BoundListener] = []
        self.refuses: Callable[[str], bool] | None = None
        self._settings = settings
        self._dispatcher = dispatcher
        self._clock = clock
        self._timers = timers
        self._flush = flush
        self._supervisor = supervisor
        self.quotas = quotas
        self._tls = tls
        self._sasl = sasl
        self._timers_changed = trio.Event()
        self.memory = RequestMemory(settings.request_bytes_max, clock, timers)
        self._traffic = {listener.name: ListenerTraffic() for listener in settings.listeners}
        self._streams = StreamTransport(self.finish_outside_work, clock, self._idle_seconds_max)
        self._epoll: EpollTransport | None = None
        if has_epoll:
            self._epoll = EpollTransport(
                clock, timers, flush, quotas, self.memory, settings.idle_ms_max
            )

    def bind(self) -> None:
        """Bind every listener, without serving yet.

        Raises:
            ConfigError: an address cannot be had; the sentence says which and why.
        """
        for listener in self._settings.listeners:
            self.bound.append(BoundListener(listener, bind_listener(listener)))

    async def serve(self) -> None:
        """Serve the bound listeners until cancelled."""
        run_supervised = self._supervisor.run
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_supervised, self._streams.run)
            for bound in self.bound:
                make_connection = self._connection_factory(bound.listener.name)
                for sock in bound.sockets:
                    if bound.listener.security_protocol in TLS_PROTOCOLS:
                        nursery.start_soon(
                            run_supervised, self._serve_tls, sock, bound.listener.name
                        )
                    elif self._epoll is not None:
                        self._epoll.listen(sock, bound.listener.name, make_connection)
                    else:
                        nursery.start_soon(
                            run_supervised, self._serve_streams, sock, bound.listener.name
                        )
            if self._epoll is not None:
                nursery.start_soon(run_supervised, self._epoll.run)
            else:
                nursery.start_soon(run_supervised, self._run_timers)

    async def connect(self, host: str, port: int) -> trio.abc.Stream:
        """Open a stream to another broker, by TCP. Raises OSError."""
        stream = await trio.open_tcp_stream(host, port)
        if self._epoll is not None:
            self._epoll.watch(stream.socket)
        return stream

    def finish_outside_work(self) -> None:
        """Flush and send what a task left behind; to be called by it when it is done."""
        if self._epoll is not None:
            self._epoll.finish_outside_work()
        else:
            self._flush()
            self._timers_changed.set()

    def time_jumped(self, milliseconds: int) -> None:
        """The clock was advanced: do what is due now; no connection has idled meanwhile."""
        if self._epoll is not None:
            self._epoll.time_jumped(milliseconds)
        now_ms = self._clock.monotonic_ms()
        run_due_timers(self._timers, now_ms, len(self._timers))
        self.finish_outside_work()

    def stop_accepting(self) -> None:
        """Close the listening sockets; connections go on."""
        if self._epoll is not None:
            self._epoll.close_listeners()
        for bound in self.bound:
            for sock in bound.sockets:
                sock.close()

    def close(self) -> None:
        """Close every socket."""
        self.stop_accepting()
        if self._epoll is not None:
            self._epoll.close()

    def connection_counts(self) -> dict[str, tuple[int, int]]:
        """By listener: how many connections are open, and how many were accepted so far."""
        open_ = Counter({name: traffic.streams for name, traffic in self._traffic.items()})
        if self._epoll is not None:
            open_ += self._epoll.connections_by_listener()
        return {name: (open_[name], traffic.accepted) for name, traffic in self._traffic.items()}

    def _connection_factory(
        self, listener_name: str, counted: CountedStreams | None = None
    ) -> ConnectionFactory:
        frame_bytes_max = self._settings.frame_bytes_max
        traffic = self._traffic[listener_name]
        connection_of = self._connection_type(listener_name)

        def make(peer: str, on_ready: Callable[[], None]) -> Connection:
            if self.refuses is not None and self.refuses(peer):
                raise ConnectionRefusedError(errno.ECONNREFUSED, "a fault refuses connections")
            traffic.accepted += 1
            made = connection_of(self._dispatcher, listener_name, peer, frame_bytes_max, on_ready)
            made.reader.reserve = partial(self.memory.reserve, made)
            if counted is not None:
                counted.note_connection(made)
            return made

        return make

    def _connection_type(self, listener_name: str) -> Callable[..., Connection]:
        """What is made of a connection to a listener."""
        sasl = self._sasl
        if sasl is None or not sasl.has(listener_name):
            return Connection
        from .sasl_connection import SaslConnection

        return partial(
            SaslConnection,
            make_authenticator=partial(sasl.authenticator, listener_name),
            login_bytes_max=self._settings.login_bytes_max,
        )

    @property
    def _idle_seconds_max(self) -> float:
        idle_ms = self._settings.idle_ms_max
        return idle_ms / 1000 if idle_ms >= 0 else float("inf")

    async def _serve_tls(self, sock: socket.socket, listener_name: str) -> None:
        from .tls_listener import serve_tls

        assert self._tls is not None, "there is a listener that speaks TLS"
        counted = CountedStreams(self.quotas, listener_name, self._clock)
        await serve_tls(
            sock,
            self._tls.of,
            listener_name,
            self._connection_factory(listener_name, counted),
            self._streams,
            self._traffic[listener_name],
            self._idle_seconds_max,
            counted,
        )

    async def _serve_streams(self, sock: socket.socket, listener_name: str) -> None:
        counted = CountedStreams(self.quotas, listener_name, self._clock)
        make_connection = self._connection_factory(listener_name, counted)
        traffic = self._traffic[listener_name]

        async def serve_stream(accepted: trio.socket.SocketType, peer: str) -> None:
            traffic.streams += 1
            try:
                stream = trio.SocketStream(accepted)
                await self._streams.serve(
                    stream, peer, make_connection, counted.note_used, counted.note_unread
                )
            finally:
                traffic.streams -= 1

        await accept_all(sock, serve_stream, counted)

    async def _run_timers(self) -> None:
        """Run the timers where no epoll transport does."""
        while True:
            self._timers_changed = trio.Event()
            deadline_ms = self._timers.next_deadline_ms()
            wait = float("inf")
            if deadline_ms is not None:
                wait = max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000
            with trio.move_on_after(wait):
                await self._timers_changed.wait()
            run_due_timers(self._timers, self._clock.monotonic_ms())
            self._flush()
