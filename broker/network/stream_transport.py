"""The general transport: two tasks per connection, over any trio stream.

It serves TLS, in-memory networks and platforms without epoll. Requests are handled as in
the epoll transport: a turn's frames of what was received, a flush, then the answers. A connection
takes its turn at once while that leaves others their time; else it waits, and `StreamTransport.run`
gives the turns in their order.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence

import trio

from ...runtime.clock import Clock, precise_seconds, processor_seconds
from ...storage.errors import StorageError
from ...storage.io.file_slice import FileSlice
from ...storage.io.files import Buffer
from ..request.route import FramePart
from .connection import Connection, ConnectionFactory
from .fair_order import (
    PASS_MS,
    PASS_SECONDS,
    FairOrder,
    Turns,
    requests_per_turn,
)
from .send_buffers import in_memory_bytes

logger = logging.getLogger(__name__)

JOIN_BYTES_MAX = 64 * 1024
"""Smaller buffers are joined up to this: each sending has its price, and more so over TLS."""
READ_BYTES_MAX = 256 * 1024
"""So much of a file is in memory at once, and so much is encrypted before others are looked at."""

STREAM_PASS_SECONDS = PASS_SECONDS / 4
"""A request passes through several tasks, and between each and the next there may be a pass."""
STREAM_REQUESTS_PER_TURN_MAX = 16
"""Likewise."""

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class StreamTransport:
    """Drives connections over trio streams.

    Args:
        finish_pass: writes and publishes what handlers staged, completes what waited, and
            sends the answers of connections on other transports.
        clock: ends turns.
        idle_seconds_max: connections silent for longer are closed, and those that do not take
            their answers.
        seconds: measures what turns take.
    """

    def __init__(
        self,
        finish_pass: Callable[[], None],
        clock: Clock,
        idle_seconds_max: float = math.inf,
        seconds: Callable[[], float] = processor_seconds,
    ) -> None:
        self._finish_pass = finish_pass
        self._clock = clock
        self._idle_seconds_max = idle_seconds_max
        self._seconds = seconds
        self._order = FairOrder()
        self._waiting: list[StreamLink] = []
        self._has_waiting = trio.Event()
        self._spell_began = 0.0
        self._spell_seconds = 0.0

    async def run(self) -> None:
        """Give turns to those that wait for them, until cancelled."""
        while True:
            await self._has_waiting.wait()
            self._has_waiting = trio.Event()
            while self._waiting:
                self._run_pass()
                await trio.lowlevel.checkpoint()

    def _run_pass(self) -> None:
        order, self._waiting = self._order.sorted(self._waiting), []
        requests = min(requests_per_turn(len(order)), STREAM_REQUESTS_PER_TURN_MAX)
        began = now = self._seconds()
        for index, link in enumerate(order):
            if now - began >= STREAM_PASS_SECONDS:
                self._waiting = order[index:]
                break
            link.connection.requests_per_turn = requests
            try:
                now = self._give_turn(link, now)
            except Exception:  # one connection's, which must not end the others
                logger.exception("the connection from %s failed", link.connection.peer)
                link.connection.fail("its request could not be handled")
            link.had_turn.set()
        self._finish_pass()

    def _give_turn(self, link: StreamLink, began: float) -> float:
        """Returns when it ended."""
        link.take_turn(self._clock.monotonic_ms() + PASS_MS)
        ended = self._seconds()
        is_whole = not link.connection.reader.has_unfinished_frame
        self._order.note_turn(link, ended - began, is_request=is_whole)
        return ended

    async def turn_of(self, link: StreamLink) -> None:
        """Have the link take a turn: now, or when it is its turn. Both its tasks may wait for one.

        A quarter of the time may go to turns that are taken at once, for these know no order.
        """
        now = precise_seconds()
        if now - self._spell_began >= 4 * STREAM_PASS_SECONDS:
            self._spell_began, self._spell_seconds = now, 0.0
        if not self._waiting and self._spell_seconds < STREAM_PASS_SECONDS:
            link.connection.requests_per_turn = STREAM_REQUESTS_PER_TURN_MAX
            began = self._seconds()
            self._spell_seconds += self._give_turn(link, began) - began
            self._finish_pass()
            return
        if link not in self._waiting:
            link.had_turn = trio.Event()
            self._waiting.append(link)
            self._has_waiting.set()
        try:
            await link.had_turn.wait()
        finally:
            if link in self._waiting:
                self._waiting.remove(link)

    async def serve(
        self,
        stream: trio.abc.Stream,
        peer: str,
        make_connection: ConnectionFactory,
        note_used: Callable[[str], None] = lambda peer: None,
        note_unread: Callable[[str, int], None] = lambda peer, unread_bytes: None,
    ) -> None:
        """Serve one connection until either side ends it; closes the stream.

        Args:
            stream: it comes over this.
            peer: the other side's name.
            make_connection: makes the broker's side.
            note_used: called with the name when something has come.
            note_unread: called with the name and how many bytes of answers the peer has yet to
                take, whenever that changes.
        """
        link = StreamLink(
            stream,
            self.turn_of,
            self._order.newcomer(),
            self._idle_seconds_max,
            note_used,
            note_unread,
        )
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
    """A stream and the connection that it carries: one task receives, one sends.

    Attributes:
        turns: its place among others.
        had_turn: is set when it has had the turn that it waits for.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        turn_of: Callable[[StreamLink], Awaitable[None]],
        turns: Turns,
        idle_seconds_max: float,
        note_used: Callable[[str], None],
        note_unread: Callable[[str, int], None],
    ) -> None:
        self.connection: Connection
        self.turns = turns
        self.had_turn = trio.Event()
        self._stream = stream
        self._turn_of = turn_of
        self._idle_seconds_max = idle_seconds_max
        self._note_used = note_used
        self._note_unread = note_unread
        self._ready = trio.Event()
        self._sent = trio.Event()
        self._is_sending = False
        self._received: memoryview | None = None

    def on_ready(self) -> None:
        """The connection has output, or may go on."""
        self._ready.set()

    def take_turn(self, ends_ms: int) -> None:
        """Handle what was received, or go on with what waited."""
        connection, received = self.connection, self._received
        connection.start_turn(ends_ms)
        if received is not None:
            self._received = None
            connection.process(connection.reader.receive(received, connection.requests_per_turn))
        elif connection.may_go_on:
            connection.process_backlog()
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
            self._note_used(connection.peer)
            # A bytearray, for offsets are patched into records where they lie.
            region = data if isinstance(data, bytearray) else bytearray(data)
            self._received = memoryview(region)
            await self._turn_of(self)
            while connection.is_muted or not connection.reader.may_receive():
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
            if connection.may_go_on:
                await self._turn_of(self)
            output, connection.output = connection.output, []
            self._is_sending = True
            try:
                if not await self._send_pieces(output):
                    break
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

    async def _send_pieces(self, output: Sequence[FramePart]) -> bool:
        """Send the output; False where the peer has taken nothing for too long."""
        peer = self.connection.peer
        unread_bytes = in_memory_bytes(output)
        self._note_unread(peer, unread_bytes)
        for piece in pieces(output):
            with trio.move_on_after(self._idle_seconds_max) as idle:
                await self._stream.send_all(piece)
            if idle.cancelled_caught:
                return False
            unread_bytes = max(unread_bytes - len(piece), 0)
            if unread_bytes:
                self._note_unread(peer, unread_bytes)
        self._note_unread(peer, 0)
        return True


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
                for start in range(0, len(buffer), READ_BYTES_MAX):
                    yield memoryview(buffer)[start : start + READ_BYTES_MAX]
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
