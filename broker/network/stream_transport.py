"""The general transport: two tasks per connection, over any trio stream.

It serves TLS, in-memory networks and platforms without epoll. Requests are handled as in
the epoll transport: all frames of what was received, one flush, then the answers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence

import trio

from ...storage.errors import StorageError
from ...storage.io.file_slice import FileSlice
from ...storage.io.files import Buffer
from ..request.route import FramePart
from .connection import Connection, ConnectionFactory

logger = logging.getLogger(__name__)

JOIN_BYTES_MAX = 64 * 1024
"""Smaller buffers are joined up to this: each sending has its price, and more so over TLS."""
READ_BYTES_MAX = 256 * 1024
"""So much of a file is in memory at once."""

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class StreamTransport:
    """Drives connections over trio streams.

    Args:
        finish_pass: writes and publishes what handlers staged, completes what waited, and
            sends the answers of connections on other transports.
        idle_seconds_max: connections silent for longer are closed.
    """

    def __init__(self, finish_pass: Callable[[], None], idle_seconds_max: float = math.inf) -> None:
        self._finish_pass = finish_pass
        self._idle_seconds_max = idle_seconds_max

    async def serve(
        self, stream: trio.abc.Stream, peer: str, make_connection: ConnectionFactory
    ) -> None:
        """Serve one connection until either side ends it; closes the stream."""
        link = StreamLink(stream, self._finish_pass, self._idle_seconds_max)
        try:
            link.connection = make_connection(peer, link.on_ready)
        except ConnectionRefusedError as error:
            logger.warning("cannot serve %s: %s", peer, error)
            await trio.aclose_forcefully(stream)
            return
        try:
            async with stream, trio.open_nursery() as nursery:
                nursery.start_soon(link.receive_all, nursery.cancel_scope)
                nursery.start_soon(link.send_all, nursery.cancel_scope)
        finally:
            link.connection.closed()


class StreamLink:
    """A stream and the connection that it carries: one task receives, one sends."""

    def __init__(
        self, stream: trio.abc.Stream, finish_pass: Callable[[], None], idle_seconds_max: float
    ) -> None:
        self.connection: Connection
        self._stream = stream
        self._finish_pass = finish_pass
        self._idle_seconds_max = idle_seconds_max
        self._ready = trio.Event()
        self._sent = trio.Event()
        self._is_sending = False

    def on_ready(self) -> None:
        """The connection has output, or may go on."""
        self._ready.set()

    async def receive_all(self, scope: trio.CancelScope) -> None:
        """Receive and handle; nothing more is read while the connection is muted."""
        connection = self.connection
        while not connection.is_closing:
            with trio.move_on_after(self._idle_seconds_max) as idle:
                try:
                    data = await self._stream.receive_some()
                except _GONE:
                    break
            if idle.cancelled_caught or not data:
                break
            # A bytearray, for offsets are patched into records where they lie.
            region = data if isinstance(data, bytearray) else bytearray(data)
            connection.process(connection.reader.receive(memoryview(region)))
            self._finish_pass()
            self._ready.set()
            while connection.is_muted:
                await self._something_sent()
        self._ready.set()
        # The peer may be done sending, and waits for its answers still.
        while self._is_sending or connection.unanswered or connection.output or connection.backlog:
            await self._something_sent()
        scope.cancel()

    async def _something_sent(self) -> None:
        """Wait until there was another look at what is to be sent."""
        self._sent = trio.Event()
        await self._sent.wait()

    async def send_all(self, scope: trio.CancelScope) -> None:
        """Send answers as they come, and go on with what waited behind a parked request."""
        connection = self.connection
        while True:
            await self._ready.wait()
            self._ready = trio.Event()
            if connection.backlog and not connection.unanswered:
                connection.start_turn()
                connection.process_backlog()
                self._finish_pass()
            output, connection.output = connection.output, []
            self._is_sending = True
            try:
                for piece in pieces(output):
                    await self._stream.send_all(piece)
            except _GONE:
                break
            except StorageError as error:
                logger.error("closing the connection from %s: %s", connection.peer, error)
                break
            self._is_sending = False
            connection.note_sent()
            connection.close_if_broken()
            if connection.is_closing:
                break
            if connection.may_go_on:
                self._ready.set()
            self._sent.set()
        scope.cancel()


def pieces(output: Sequence[FramePart]) -> Iterator[Buffer]:
    """The output as buffers to send one by one.

    Args:
        output: buffers and slices of files.

    Raises:
        StorageError: a file is shorter than its slice, or the disk fails.
    """
    small: list[Buffer] = []
    size = 0
    for buffer in output:
        if not isinstance(buffer, FileSlice):
            if small and size + len(buffer) > JOIN_BYTES_MAX:
                yield b"".join(small)
                small, size = [], 0
            if len(buffer) > JOIN_BYTES_MAX:
                yield buffer
            else:
                small.append(buffer)
                size += len(buffer)
            continue
        for start in range(0, buffer.size, READ_BYTES_MAX):
            part_size = min(READ_BYTES_MAX, buffer.size - start)
            read = FileSlice(buffer.file, buffer.position + start, part_size).read()
            if small:
                read, small, size = b"".join([*small, read]), [], 0
            yield read
    if small:
        yield b"".join(small)
