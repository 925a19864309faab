"""What serves a simulated broker's listener: the product's connections, on simulated wires."""

from __future__ import annotations

import socket
from collections import deque
from typing import Any, cast

from ...broker.network.connection import Connection
from ...broker.network.epoll_transport import run_due_timers
from ...broker.network.server import BoundListener, Server
from ...broker.network.stream_transport import pieces
from ...runtime import waiting
from ...storage.errors import StorageError
from .kernel import Alarm, Kernel, Process
from .network import Network, Wire

PORT = 9092


class _BoundSocket:
    """Stands for a socket that is listened on."""

    def getsockname(self) -> tuple[str, int]:
        return "", PORT

    def close(self) -> None:
        pass


class ServedWire:
    """A wire that a client has opened to this broker.

    Attributes:
        is_dirty: whether it is among those to be looked at before the pass ends.
    """

    def __init__(self, server: SimulatedServer, wire: Wire) -> None:
        self.is_dirty = False
        self.wire = wire
        self._server = server
        self._inbox: deque[bytes] = deque()
        make = server.make_connection
        self.connection: Connection = make(f"{wire.client}:{PORT}", self._on_ready)

    def _on_ready(self) -> None:
        if not self.is_dirty:
            self.is_dirty = True
            self._server.dirty.append(self)

    def received(self, data: bytes) -> None:
        """Bytes have come; none are read while the connection is muted."""
        self._inbox.append(data)
        if not self.connection.is_muted:
            self._read()
            self._server.finish_outside_work()

    def _read(self) -> None:
        connection = self.connection
        connection.start_turn()
        region = memoryview(bytearray(self._inbox.popleft()))
        connection.process(connection.reader.receive(region, connection.requests_per_turn))
        self._on_ready()

    def closed(self) -> None:
        """The client has closed it, or is gone."""
        self._server.served.pop(self, None)
        if not self.connection.is_closed:
            self.connection.closed()
        self._server.finish_outside_work()

    def go_on(self) -> None:
        """Send what is answered, and read on."""
        connection = self.connection
        if connection.is_closed:
            return
        if connection.reader.failure is not None:
            connection.close_if_broken()
        try:
            output, connection.output = connection.output, []
            for piece in pieces(output):
                self.wire.send(self.wire.to_client, bytes(piece))
        except StorageError:
            connection.is_closing = True
        connection.note_sent()
        if connection.is_closing:
            self.wire.close(self.wire.to_client)
            self.closed()
        elif connection.may_go_on:
            connection.start_turn()
            connection.process_backlog()
            self._on_ready()
        elif self._inbox and not connection.is_muted:
            self._read()


class SimulatedServer(Server):
    """Serves a broker's listener on the simulated network.

    Args:
        kernel, network, process: of the simulation.
        host: where the process is.

    Attributes:
        dirty: wires to be looked at before the pass ends.
        served: all that are open.
    """

    def __init__(
        self, kernel: Kernel, network: Network, process: Process, host: str, *args: Any
    ) -> None:
        super().__init__(*args, has_epoll=False)
        self.process = process
        self.dirty: list[ServedWire] = []
        self.served: dict[ServedWire, None] = {}
        self._kernel = kernel
        self._network = network
        self._host = host
        self._look: Alarm | None = None
        self._look_deadline_ms: int | None = None
        (self._listener,) = args[0].listeners
        self.make_connection = self._connection_factory(self._listener.name)
        process.settle = self._schedule_timers

    def bind(self) -> None:
        """There is one listener, and nobody else has its address."""
        sockets = cast("tuple[socket.socket, ...]", (_BoundSocket(),))
        self.bound.append(BoundListener(self._listener, sockets))

    async def serve(self) -> None:
        """Accept connections until cancelled."""
        self._network.listen(self._host, self)
        await waiting.sleep_forever()

    def accept(self, wire: Wire) -> ServedWire | None:
        """A client connects."""
        served = ServedWire(self, wire)
        self.served[served] = None
        return served

    def stop_accepting(self) -> None:
        """Accept no more."""
        self._network.stop_listening(self._host)

    def close(self) -> None:
        """Close all wires."""
        self.stop_accepting()
        for served in list(self.served):
            served.wire.close(served.wire.to_client)
            served.closed()

    def finish_outside_work(self) -> None:
        """Flush, and send what is answered."""
        self._flush()
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for served in dirty:
                served.is_dirty = False
                served.go_on()
            self._flush()

    # -- timers --------------------------------------------------------------------------------

    def _schedule_timers(self) -> None:
        """Wake up for the next timer, if no earlier one is waited for."""
        deadline_ms = self._timers.next_deadline_ms()
        known_ms = self._look_deadline_ms
        if deadline_ms is None or (known_ms is not None and deadline_ms >= known_ms):
            return
        if self._look is not None:
            self._look.cancel()
        self._look_deadline_ms = deadline_ms
        delay_us = max(deadline_ms - self._clock.monotonic_ms(), 0) * 1000
        self._look = self._kernel.after(delay_us, self._timers_due, self.process)

    def _timers_due(self) -> None:
        self._look = self._look_deadline_ms = None
        now_ms = self._clock.monotonic_ms()
        deadline_ms = self._timers.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            run_due_timers(self._timers, now_ms)
            self.finish_outside_work()
