"""The network between brokers, clients and the metadata store: bytes that come late, or never.

A wire is one TCP connection. What is sent over it arrives in order, after a delay that is another
one each time, so what goes over different wires overtakes. A direction between two hosts may be
cut: then what is sent waits, as for TCP's retransmissions, and arrives when the cut is mended, if
the wire has not been given up. A host that lost its power does not say so: its peers' wires are
half open until they send something after it is back, or have waited for too long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, cast

from ...client.errors import ClientError, ConnectError, DisconnectedError, RequestTimeoutError
from ...client.network.api_version_ranges import ApiVersionRanges
from ...client.network.pipeline import RequestPipeline
from ...client.settings import ClientSettings
from ...runtime import waiting
from .kernel import Cancelled, Kernel, Process

if TYPE_CHECKING:
    from ...client.network.connection import Authenticate, Connection
    from ...protocol.codec.message import Message

CONNECT_MS_MAX = 3_000
"""How long a client waits for a connection at most."""
RETRANSMIT_US_MAX = 200_000
"""What waited for a cut to be mended arrives within this time."""
LATENCY_US = 200
LATENCY_US_MAX = 3_000
RESPONSE_BYTES_MAX = 1 << 24


class WireEnd(Protocol):
    """What reads one end of a wire."""

    def received(self, data: bytes) -> None:
        """Bytes have come."""

    def closed(self) -> None:
        """The other side has closed it, or is gone."""


class Listening(Protocol):
    """A process that accepts connections."""

    process: Process

    def accept(self, wire: Wire) -> WireEnd | None:
        """The reader of its end; None: it is refused."""


class Half:
    """One direction of a wire: from a host to a process at another.

    Attributes:
        reader: of what arrives; None: nobody any more.
    """

    __slots__ = ("arrives_us", "held", "process", "reader", "route")

    def __init__(self, route: tuple[str, str], process: Process) -> None:
        self.route = route
        self.process = process
        self.reader: WireEnd | None = None
        self.arrives_us = 0
        self.held: deque[Callable[[], None]] = deque()


class Wire:
    """One connection.

    Args:
        network: carries it.
        client, server: the hosts' names.
        client_process: whose the near end is.
        server_process: whose the far end is.
    """

    def __init__(
        self,
        network: Network,
        client: str,
        server: str,
        client_process: Process,
        server_process: Process,
    ) -> None:
        self.network = network
        self.client = client
        self.server = server
        self.to_server = Half((client, server), server_process)
        self.to_client = Half((server, client), client_process)
        self._is_lost = False

    def send(self, half: Half, data: bytes) -> None:
        """Send bytes in one direction."""
        self.network.carry(self, half, partial(self._arrive, half, data))

    def close(self, half: Half) -> None:
        """Close the wire from the side that sends into `half`; the other one hears of it."""
        other = self.to_client if half is self.to_server else self.to_server
        if other.reader is None:
            return
        other.reader = None
        self.network.carry(self, half, lambda: self._end(half))

    def _arrive(self, half: Half, data: bytes) -> None:
        if half.reader is not None and not self._is_lost:
            half.reader.received(data)

    def _end(self, half: Half) -> None:
        reader, half.reader = half.reader, None
        if reader is not None:
            reader.closed()
        self.network.forget(self)

    def lose(self, half: Half) -> None:
        """The machine that reads `half` is off, and nothing of what it sent arrives."""
        half.reader = None
        self._is_lost = True


class Network:
    """All wires.

    Args:
        kernel: brings what is sent.
        rng: decides how long that takes.

    Attributes:
        cut: directions, as from one host to another, in which nothing arrives.
        latency_us_max: how long a message takes at most.
    """

    def __init__(self, kernel: Kernel, rng: Random) -> None:
        self.cut: dict[tuple[str, str], None] = {}
        self.latency_us_max = LATENCY_US_MAX
        self._kernel = kernel
        self._rng = rng
        self._listening: dict[str, Listening] = {}
        self._wires: dict[Wire, None] = {}
        self._held: dict[tuple[str, str], dict[Half, None]] = {}

    # -- who is there --------------------------------------------------------------------------

    def listen(self, host: str, listening: Listening) -> None:
        """A process at a host accepts connections from now on."""
        self._listening[host] = listening

    def stop_listening(self, host: str) -> None:
        """Nobody does there."""
        self._listening.pop(host, None)

    def host_ended(self, host: str, *, silently: bool) -> None:
        """A host's process is gone: its wires are closed, or nobody hears of it for a while."""
        self.stop_listening(host)
        for wire in list(self._wires):
            for own, other in (
                (wire.to_server, wire.to_client),
                (wire.to_client, wire.to_server),
            ):
                if own.route[1] == host:
                    if silently:
                        wire.lose(own)
                        self._forget_if_lost(wire)
                    else:
                        wire.close(other)

    def _forget_if_lost(self, wire: Wire) -> None:
        if wire.to_server.reader is None and wire.to_client.reader is None:
            self._wires.pop(wire, None)

    def forget(self, wire: Wire) -> None:
        """It is over."""
        self._wires.pop(wire, None)

    # -- what goes over them -------------------------------------------------------------------

    def delay_us(self) -> int:
        """How long a message takes: mostly little."""
        share = self._rng.random()
        return LATENCY_US + int(share * share * share * self.latency_us_max)

    def carry(self, wire: Wire, half: Half, arrive: Callable[[], None]) -> None:
        """Have something arrive behind what was sent before it."""
        if half.route in self.cut or half.held:
            half.held.append(arrive)
            self._held.setdefault(half.route, {})[half] = None
            return
        kernel = self._kernel
        half.arrives_us = max(half.arrives_us + 1, kernel.now_us + self.delay_us())
        kernel.after(half.arrives_us - kernel.now_us, arrive, half.process)
        other = wire.to_client if half is wire.to_server else wire.to_server
        if half.reader is None and half.process.is_dead and other.reader is not None:
            # Its host lost its power. Once it is back it knows nothing of the wire, and says so.
            listening = self._listening.get(half.route[1])
            if listening is not None and listening.process is not half.process:
                self.carry(wire, other, lambda: wire._end(other))

    def mend(self, *routes: tuple[str, str]) -> None:
        """Cut no more; all that is cut if none is named."""
        for route in routes or list(self.cut):
            self.cut.pop(route, None)
            for half in self._held.pop(route, {}):
                delay_us = int(self._rng.random() * RETRANSMIT_US_MAX)
                half.arrives_us = max(half.arrives_us, self._kernel.now_us + delay_us)
                while half.held:
                    half.arrives_us += 1
                    self._kernel.after(
                        half.arrives_us - self._kernel.now_us, half.held.popleft(), half.process
                    )

    def break_one(self) -> str | None:
        """Reset a wire, as a host between may; which one, None where there is none."""
        wires = list(self._wires)
        if not wires:
            return None
        wire = self._rng.choice(wires)
        for half in (wire.to_server, wire.to_client):
            reader, half.reader = half.reader, None
            if reader is not None:
                self._kernel.after(self.delay_us(), reader.closed, half.process)
        self.forget(wire)
        return f"{wire.client} to {wire.server}"

    async def connect(self, client: str, process: Process, server: str, end: WireEnd) -> Wire:
        """A connection to whoever listens at a host. Raises ConnectError."""
        kernel = self._kernel
        await kernel.sleep_us(self.delay_us())
        if (client, server) in self.cut or (server, client) in self.cut:
            await kernel.sleep(CONNECT_MS_MAX / 1000)
            raise ConnectError(f"{server} does not answer")
        listening = self._listening.get(server)
        if listening is None or listening.process.is_dead:
            raise ConnectError(f"{server} refuses connections")
        wire = Wire(self, client, server, process, listening.process)
        reader = listening.accept(wire)
        if reader is None:
            raise ConnectError(f"{server} refuses the connection")
        wire.to_server.reader = reader
        wire.to_client.reader = end
        self._wires[wire] = None
        try:
            await kernel.sleep_us(self.delay_us())
        except Cancelled:
            wire.close(wire.to_server)
            raise
        return wire


class SimulatedConnection:
    """The client's side of a wire: what `client.network.connection.Connection` is to its users.

    Args:
        kernel: the time.
        settings: the client's.
        peer: the broker's host.
    """

    def __init__(self, kernel: Kernel, settings: ClientSettings, peer: str) -> None:
        self.peer = peer
        self.versions = ApiVersionRanges({})
        self.failure: ClientError | None = None
        self.wire: Wire | None = None
        self._kernel = kernel
        self._settings = settings
        self._pipeline = RequestPipeline(settings.client_id, RESPONSE_BYTES_MAX)

    async def request(
        self,
        request: Message,
        *,
        version: int | None = None,
        version_max: int | None = None,
        timeout_ms: int | None = None,
        expect_answer: bool = True,
        in_steps: bool = False,
    ) -> Any:
        """Send a request and wait for its answer; see `Connection.request`."""
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args)
        api_key = type(request).api_key
        assert api_key is not None
        assert self.wire is not None
        used = self.versions.usable(api_key, version=version, version_max=version_max)
        kernel = self._kernel
        done = kernel.event()
        started = self._pipeline.start(request, used, 0, done.set, expect_answer=expect_answer)
        self.wire.send(self.wire.to_server, b"".join(started.buffers))
        in_flight = started.in_flight
        if not expect_answer:
            return None
        wait_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        late = kernel.after(wait_ms * 1000, partial(self._look, done), kernel.process)
        await done.wait()
        late.cancel()
        if in_flight.failure is not None:
            raise type(in_flight.failure)(*in_flight.failure.args)
        return in_flight.answer

    def _look(self, done: waiting.Event) -> None:
        if not done.is_set():
            self.close(RequestTimeoutError(f"no answer from {self.peer}"))

    async def log_in(self, authenticate: Authenticate) -> None:
        """Log in."""
        await authenticate(cast("Connection", self))

    def close(self, failure: ClientError | None = None) -> None:
        """End it; what is in flight fails."""
        if self.failure is None:
            self.failure = failure or DisconnectedError(f"the connection to {self.peer} is closed")
            self._pipeline.fail_all(self.failure)
        if self.wire is not None:
            wire, self.wire = self.wire, None
            wire.close(wire.to_server)

    # -- its end of the wire -------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """An answer, or a part of one."""
        if self.failure is None:
            self._kernel.bring(partial(self._pipeline.receive, data))

    def closed(self) -> None:
        """The broker has closed it, or is gone."""
        self.close()


def opener(network: Network, kernel: Kernel, client: str, process: Process) -> Callable[..., Any]:
    """What `client.network.connection.open_connection` is to a host of the simulation."""

    @asynccontextmanager
    async def open_connection(
        host: str,
        port: int,
        settings: ClientSettings | None = None,
        *,
        connect: object = None,
        ssl_context: object = None,
        authenticate: Callable[[Connection], Awaitable[None]] | None = None,
        fixed_versions: Mapping[int, int] | None = None,
    ) -> AsyncIterator[SimulatedConnection]:
        connection = SimulatedConnection(kernel, settings or ClientSettings(), host)
        if fixed_versions is not None:
            connection.versions = ApiVersionRanges.fixed(fixed_versions)
        connection.wire = await network.connect(client, process, host, connection)
        try:
            if authenticate is not None:
                await connection.log_in(authenticate)
            yield connection
        finally:
            connection.close()

    return open_connection
