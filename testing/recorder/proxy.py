"""The proxy: a listener for each broker, and connections from there to it."""

from __future__ import annotations

import itertools
import socket
import time
from functools import partial
from typing import Any

import trio

from .addresses import Address
from .proxied_connection import FRAME_BYTES_MAX, NoListenerError, ProxiedConnection
from .recording import RecordedConnection, Recording

BROKERS_MAX = 1000
CONNECTIONS_MAX = 2000
BACKLOG = 128
UPSTREAM_CONNECT_SECONDS_MAX = 10.0


ANY_PORT = Address("127.0.0.1", 0)


class ListenError(NoListenerError):
    """The proxy cannot listen where it should; the text is a sentence."""


def single_cause(error: BaseException) -> BaseException:
    """The one exception within groups of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


class Proxy:
    """A proxy between clients and the brokers of one cluster.

    Args:
        upstream: a broker of the cluster.
        recording: gets all that passes.
        listen: where clients of that broker come. The other brokers get the free ports that
            follow, or any if the port is 0.
        advertised_host: what clients get in place of brokers' hosts; by default the address
            by which they have reached the proxy.
        frame_bytes_max: larger frames end their connection.

    Attributes:
        bootstrap: where clients come, once it runs.
    """

    def __init__(
        self,
        upstream: Address,
        recording: Recording,
        *,
        listen: Address = ANY_PORT,
        advertised_host: str | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        self.upstream = upstream
        self.bootstrap = listen
        self._recording = recording
        self._listen = listen
        self._advertised_host = advertised_host
        self._frame_bytes_max = frame_bytes_max
        self._family = socket.AF_INET
        self._sockaddr: tuple[Any, ...] = listen
        self._ports: dict[Address, int] = {}
        self._numbers = itertools.count(1)
        self._open_count = 0
        self._nursery: trio.Nursery | None = None

    async def run(self, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; tells `bootstrap` when it listens.

        Raises:
            ListenError: it cannot listen there.
        """
        try:
            found = await trio.socket.getaddrinfo(
                self._listen.host, self._listen.port, type=socket.SOCK_STREAM
            )
        except (OSError, ValueError) as error:
            raise ListenError(f"{self._listen} is no address of this machine: {error}") from error
        self._family, _, _, _, self._sockaddr = found[0]
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            port = self._port_of(self.upstream)
            self.bootstrap = Address(str(self._sockaddr[0]), port)
            task_status.started(self.bootstrap)
            await trio.sleep_forever()

    async def finds_broker(self) -> bool:
        """Whether somebody listens where the broker should."""
        stream = await self._connect(self.upstream)
        if stream is not None:
            await stream.aclose()
        return stream is not None

    def _port_of(self, broker: Address) -> int:
        """The port at which a broker is reached, listened to from now on."""
        port = self._ports.get(broker)
        if port is not None:
            return port
        if len(self._ports) == BROKERS_MAX:
            raise NoListenerError(f"answers name more than {BROKERS_MAX:,} brokers")
        listening = self._listening_socket()
        port = self._ports[broker] = int(listening.getsockname()[1])
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        assert self._nursery is not None
        serve = partial(self._serve, broker)
        self._nursery.start_soon(trio.serve_listeners, serve, [listener])
        self._recording.note(f"broker {broker} is reached at port {port}")
        return port

    def _listening_socket(self) -> socket.socket:
        """A socket at the next port that is free; the first is the requested one."""
        first = self._sockaddr[1]
        tries = range(first + 1, min(first + 1 + 2 * BROKERS_MAX, 65_536))
        ports = [first] if not (first and self._ports) else tries
        failure = None
        for port in ports:
            try:
                return self._bound(port)
            except OSError as error:
                failure = error
        where = Address(str(self._sockaddr[0]), first)
        raise ListenError(f"{where} cannot be listened to: {failure and failure.strerror}")

    def _bound(self, port: int) -> socket.socket:
        made = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((self._sockaddr[0], port, *self._sockaddr[2:]))
            made.listen(BACKLOG)
        except OSError:
            made.close()
            raise
        return made

    async def _serve(self, broker: Address, client: trio.SocketStream) -> None:
        """One client that has connected to a broker's listener."""
        if self._open_count == CONNECTIONS_MAX:
            self._recording.note(f"more than {CONNECTIONS_MAX:,} connections: one was refused")
            return
        self._open_count += 1
        try:
            upstream = await self._connect(broker)
            if upstream is not None:
                async with upstream:
                    await self._connection(broker, client, upstream).run()
        except OSError as error:  # it has gone before it was served
            self._recording.note(f"a connection to {broker} was not served: {error}")
        except Exception as error:  # one connection's, which ends no other
            cause = single_cause(error)
            self._recording.note(f"a connection to {broker} failed: {cause!r}")
        finally:
            self._open_count -= 1

    async def _connect(self, broker: Address) -> trio.SocketStream | None:
        try:
            with trio.fail_after(UPSTREAM_CONNECT_SECONDS_MAX):
                return await trio.open_tcp_stream(*broker)
        except trio.TooSlowError:
            why = f"no connection within {UPSTREAM_CONNECT_SECONDS_MAX:.0f} s"
        except (OSError, ValueError) as error:
            why = str(error)
        self._recording.note(f"broker {broker} cannot be reached: {why}")
        return None

    def _connection(
        self, broker: Address, client: trio.SocketStream, upstream: trio.SocketStream
    ) -> ProxiedConnection:
        here = client.socket.getsockname()[0]

        def translate(broker: Address) -> Address:
            return Address(self._advertised_host or here, self._port_of(broker))

        connection = RecordedConnection(
            next(self._numbers),
            time.time_ns(),
            Address(*client.socket.getpeername()[:2]),
            Address(*upstream.socket.getpeername()[:2]),
            broker,
        )
        self._recording.opened(connection)
        return ProxiedConnection(
            connection, client, upstream, self._recording, translate, self._frame_bytes_max
        )
