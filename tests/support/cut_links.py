"""The links between brokers, which a test can cut: a proxy before each broker.

Each broker tells the others the address of its proxy. Who connects there is known by the
client id of the first request, which brokers derive from their own. A cut goes both ways, for
connections that are there and for new ones: either nothing comes through any more, as where a
cable is pulled (what was sent arrives once the link is whole again, as TCP sees to), or all is
reset and refused, as where a machine is taken away.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Collection, Iterable
from enum import Enum

import trio

FIRST_BYTES_MAX = 64 * 1024
HEADER = struct.Struct(">ihhih")
"""Of a request: size, API, version, correlation id, length of the client id."""
BROKER_CLIENT = re.compile(rb"(?:[a-z-]*\bbroker-)?(\d+)\b")
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Cut(Enum):
    """How a link is cut."""

    SILENT = "silent"
    RESET = "reset"


class _Link:
    """Both directions between two brokers."""

    def __init__(self) -> None:
        self.cut: Cut | None = None
        self.is_open = trio.Event()
        self.is_open.set()
        self.connections: set[trio.CancelScope] = set()

    def is_reset(self) -> bool:
        return self.cut is Cut.RESET


class CuttableLinks:
    """Proxies in a thread of their own; a context manager that ends them.

    Args:
        targets: by broker id, the port that its proxy leads to.

    Attributes:
        ports: by broker id, the port of its proxy.
        strangers: client ids that are no broker's; what they send is let through.
    """

    def __init__(self, targets: dict[int, int]) -> None:
        self._targets = targets
        self._sockets = {broker_id: _listening_socket() for broker_id in targets}
        self.ports: dict[int, int] = {
            broker_id: listener.getsockname()[1] for broker_id, listener in self._sockets.items()
        }
        self.strangers: set[bytes] = set()
        self._links: dict[frozenset[int], _Link] = {}
        self._token: trio.lowlevel.TrioToken | None = None
        self._started = threading.Event()
        self._stopping = trio.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run,), daemon=True)

    def __enter__(self) -> CuttableLinks:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._tell(self._stopping.set)
        self._thread.join(60)

    def cut(self, pair: Collection[int], how: Cut) -> None:
        """Cut the link between two brokers; returns when it is cut."""

        def do() -> None:
            link = self._link(pair)
            link.cut = how
            if how is Cut.SILENT:
                link.is_open = trio.Event()
            else:
                for connection in link.connections:
                    connection.cancel()

        self._tell(do)

    def heal(self, pair: Collection[int]) -> None:
        """Make a link whole again."""

        def do() -> None:
            link = self._link(pair)
            link.cut = None
            link.is_open.set()

        self._tell(do)

    def connection_count(self, pair: Collection[int]) -> int:
        """How many connections there are between two brokers."""
        return len(self._link(pair).connections)

    def _link(self, pair: Iterable[int]) -> _Link:
        return self._links.setdefault(frozenset(pair), _Link())

    def _tell(self, do: object) -> None:
        assert self._token is not None
        trio.from_thread.run_sync(do, trio_token=self._token)  # type: ignore[arg-type]  # a function

    # -- in the thread ------------------------------------------------------------------

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            for broker_id, listener in self._sockets.items():
                nursery.start_soon(self._accept, nursery, broker_id, listener)
            self._started.set()
            await self._stopping.wait()
            nursery.cancel_scope.cancel()

    async def _accept(
        self, nursery: trio.Nursery, broker_id: int, listening: socket.socket
    ) -> None:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        async with listener:
            while True:
                nursery.start_soon(self._serve, broker_id, await listener.accept())

    async def _serve(self, broker_id: int, client: trio.SocketStream) -> None:
        try:
            async with client:
                first = await _first_bytes(client)
                source = self._source_of(first)
                if source is not None:
                    await self._relay(broker_id, client, first, self._link((source, broker_id)))
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # one side has gone, and so has the other now

    def _source_of(self, first: bytes) -> int | None:
        if len(first) < HEADER.size:
            return None
        *_, length = HEADER.unpack_from(first)
        client_id = first[HEADER.size : HEADER.size + max(length, 0)]
        found = BROKER_CLIENT.match(client_id)
        if found is None:
            self.strangers.add(client_id)
            return -1
        return int(found[1])

    async def _relay(
        self, broker_id: int, client: trio.SocketStream, first: bytes, link: _Link
    ) -> None:
        if link.is_reset():
            _reset(client)
            return
        await link.is_open.wait()
        server = await trio.open_tcp_stream("127.0.0.1", self._targets[broker_id])
        scope = trio.CancelScope()
        link.connections.add(scope)
        try:
            async with server:
                with scope:
                    # Not in the nursery, which would wrap the error of a server that has gone.
                    await server.send_all(first)
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(_pump, client, server, link, scope)
                        nursery.start_soon(_pump, server, client, link, scope)
                if link.is_reset():  # meanwhile
                    _reset(server)
                    _reset(client)
        finally:
            link.connections.discard(scope)


async def _pump(
    source: trio.SocketStream, target: trio.SocketStream, link: _Link, scope: trio.CancelScope
) -> None:
    """Carry bytes one way until a side ends, which ends both."""
    try:
        while data := await source.receive_some():
            await link.is_open.wait()
            await target.send_all(data)
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()


async def _first_bytes(stream: trio.SocketStream) -> bytes:
    """Enough of a connection to hold its first request's client id; less if it ends before."""
    data = b""
    while True:
        if len(data) >= HEADER.size:
            *_, length = HEADER.unpack_from(data)
            if len(data) >= HEADER.size + length:
                return data
        more = await stream.receive_some(FIRST_BYTES_MAX)
        if not more:
            return data
        data += more


def _reset(stream: trio.SocketStream) -> None:
    """Have the peer see a reset instead of an end."""
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)


def _listening_socket() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener
