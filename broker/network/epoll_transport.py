"""The fast transport: one task that owns an epoll of all plain TCP connections.

Parking in trio is what costs, so it is skipped, not worked around: the task polls its own
epoll, and waits in trio, on that epoll's descriptor, only when nothing has come for a moment
(`AdaptivePoller`).
A pass receives once from every ready connection, handles all whole frames, lets the brokers
flush, and sends once.
"""

from __future__ import annotations

import errno
import logging
import select
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterable

import trio

from ...runtime.clock import Clock, precise_seconds
from ...runtime.timers import Timers
from .adaptive_poller import AdaptivePoller
from .connection import Connection, ConnectionFactory, peer_name
from .send_buffers import send_buffers

logger = logging.getLogger(__name__)

RECEIVE_BYTES = 128 * 1024
"""Most that is received from one connection in one pass. A Java producer under load has five
requests of 16 KB under way: all of them are one pass."""
ARENA_BYTES = 16 * RECEIVE_BYTES
"""What one pass can receive; pages never touched take no memory."""
CHECKPOINT_EVERY_MS = 3
"""Other tasks wait no longer than this while requests keep coming."""
IDLE_CHECK_EVERY_MS = 30_000
ACCEPT_AGAIN_MS = 1000

RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose peer is reset, since it is not served."""

_READ = select.EPOLLIN | select.EPOLLRDHUP
_GONE = select.EPOLLHUP | select.EPOLLERR
"""Both directions are over. A peer that only will send no more (EPOLLRDHUP) is still owed
answers to what it has sent; that it is done shows when a receive brings nothing."""


class Link:
    """A socket and the connection that it carries."""

    __slots__ = ("_transport", "connection", "events", "fd", "is_dirty", "last_active_ms", "socket")

    def __init__(self, transport: EpollTransport, sock: socket.socket, now_ms: int) -> None:
        self._transport = transport
        self.socket = sock
        self.fd = sock.fileno()
        self.events = _READ
        self.is_dirty = False
        self.last_active_ms = now_ms
        self.connection: Connection

    def on_ready(self) -> None:
        """The connection has output, or may go on: look at it at the end of the pass."""
        if not self.is_dirty:
            self.is_dirty = True
            self._transport.dirty.append(self)


class EpollTransport:
    """Drives all plain connections of a process from one trio task.

    Args:
        clock: for timers and idle connections.
        timers: run by this task.
        flush: writes and publishes what handlers staged, and completes what waited; called
            in every pass before answers are sent.
        idle_ms_max: connections silent for longer are closed (`connections.max.idle.ms`);
            negative for never.
    """

    def __init__(
        self, clock: Clock, timers: Timers, flush: Callable[[], None], idle_ms_max: int = -1
    ) -> None:
        self.dirty: list[Link] = []
        self._unfinished: list[Link] = []
        self._clock = clock
        self._timers = timers
        self._flush = flush
        self._idle_ms_max = idle_ms_max
        self._epoll = select.epoll()
        self._links: dict[int, Link] = {}
        self._listeners: dict[int, tuple[socket.socket, ConnectionFactory]] = {}
        self._arena = memoryview(bytearray(ARENA_BYTES))
        self._parking: trio.CancelScope | None = None
        self._is_stopping = False
        self._poller = AdaptivePoller(self._epoll)
        self._pass_bytes = 0
        self._now_ms = clock.monotonic_ms()
        if idle_ms_max >= 0:
            self._schedule_idle_check()

    # -- sockets ---------------------------------------------------------------------

    def listen(self, sock: socket.socket, make_connection: ConnectionFactory) -> None:
        """Accept connections from a listening socket from now on."""
        sock.setblocking(False)
        self._listeners[sock.fileno()] = (sock, make_connection)
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def adopt(self, sock: socket.socket, peer: str, make_connection: ConnectionFactory) -> Link:
        """Serve an accepted socket."""
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self, sock, self._now_ms)
        link.connection = make_connection(peer, link.on_ready)
        self._links[link.fd] = link
        self._epoll.register(link.fd, _READ)
        return link

    def close_listeners(self) -> None:
        """Accept no more."""
        for sock, _ in self._listeners.values():
            self._epoll.unregister(sock)
            sock.close()
        self._listeners.clear()

    def close(self) -> None:
        """Close every socket and the epoll itself."""
        self._is_stopping = True
        self.close_listeners()
        for link in list(self._links.values()):
            self._close(link)
        self._epoll.close()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._links)

    def connections_by_listener(self) -> Counter[str]:
        """The same for each listener, by its name."""
        return Counter(link.connection.listener_name for link in self._links.values())

    # -- the loop --------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until `stop` is called or the task is cancelled."""
        epoll_fd = self._epoll.fileno()
        checkpoint_at_ms = 0
        while not self._is_stopping:
            events = self._epoll.poll(0)
            if not events and not self._unfinished:
                events = self._poller.next_events(self._pass_bytes)
                if not events:
                    began = precise_seconds()
                    await self._park(epoll_fd)
                    self._poller.note_parked(precise_seconds() - began)
            self._now_ms = now_ms = self._clock.monotonic_ms()
            deadline_ms = self._timers.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= now_ms:
                run_due_timers(self._timers, now_ms)
            self.run_pass(events)
            if now_ms >= checkpoint_at_ms:
                await trio.lowlevel.checkpoint()
                checkpoint_at_ms = now_ms + CHECKPOINT_EVERY_MS

    def time_jumped(self, milliseconds: int) -> None:
        """The clock was advanced: nobody has been silent for it."""
        for link in self._links.values():
            link.last_active_ms += milliseconds

    def stop(self) -> None:
        """Make `run` return after the pass it is in."""
        self._is_stopping = True
        self._wake()

    def finish_outside_work(self) -> None:
        """Flush and send what a task left behind; to be called by it when it is done."""
        self.run_pass(())
        if self._unfinished:
            self._wake()
        else:
            self._wake_for_timers()

    async def _park(self, epoll_fd: int) -> None:
        """Wait in trio for a socket or the next timer, while other tasks run."""
        with trio.CancelScope(deadline=self._parking_deadline()) as scope:
            self._parking = scope
            await trio.lowlevel.wait_readable(epoll_fd)
        self._parking = None

    def _parking_deadline(self) -> float:
        deadline_ms = self._timers.next_deadline_ms()
        if deadline_ms is None:
            return float("inf")
        return trio.current_time() + max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000

    def _wake(self) -> None:
        if self._parking is not None:
            self._parking.cancel()

    def _wake_for_timers(self) -> None:
        if self._parking is not None:
            self._parking.deadline = self._parking_deadline()

    # -- a pass ----------------------------------------------------------------------

    def run_pass(self, events: Iterable[tuple[int, int]]) -> None:
        """Receive from the ready sockets, handle, flush, go on with backlogs, send."""
        unfinished, self._unfinished = self._unfinished, []
        for link in unfinished:
            link.connection.start_turn()
            link.on_ready()
        arena_position = 0
        for fd, event in events:
            ready = self._links.get(fd)
            if ready is None:
                if fd in self._listeners:
                    self._accept(fd)
                continue
            if event & select.EPOLLOUT:
                ready.on_ready()
            if not event & ~select.EPOLLOUT:
                continue
            if arena_position > ARENA_BYTES - RECEIVE_BYTES:
                self._finish_pass()
                arena_position = 0
            arena_position += self._receive(ready, event, arena_position)
        self._pass_bytes = arena_position
        self._finish_pass()

    def _finish_pass(self) -> None:
        self._flush()
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for link in dirty:
                link.is_dirty = False
                connection = link.connection
                if connection.backlog and connection.may_go_on:
                    connection.process_backlog()
                    self._flush()
                if connection.reader.failure is not None:
                    connection.close_if_broken()
                self._send(link)
                if connection.backlog and connection.may_go_on:
                    if connection.has_used_its_turn:
                        self._unfinished.append(link)
                    else:
                        link.on_ready()

    def _receive(self, link: Link, event: int, arena_position: int) -> int:
        """Receive once and handle the frames; returns how much of the arena that took."""
        connection = link.connection
        if connection.is_muted:
            # Its next request has come before its last one is answered: Kafka mutes the
            # channel, so do we. Most clients wait, and spare us the two system calls.
            if event & _GONE:
                self._close(link)
            else:
                self._set_events(link, link.events & ~_READ)
            return 0
        try:
            region = connection.reader.tail_region()
            if region is None:
                region = self._arena[arena_position : arena_position + RECEIVE_BYTES]
                size = link.socket.recv_into(region)
                if size:
                    connection.process(connection.reader.feed(region[:size]))
                    taken = size
            else:
                size, taken = link.socket.recv_into(region), 0
                if size:
                    frame = connection.reader.feed_tail(size)
                    connection.process(() if frame is None else (frame,))
        except BlockingIOError:
            return 0
        except OSError:
            self._close(link)
            return 0
        if not size:
            self._close(link)
            return 0
        link.last_active_ms = self._now_ms
        return taken

    def _send(self, link: Link) -> None:
        """Send all output; what the socket does not take waits for it to be writable."""
        connection = link.connection
        output = connection.output
        if output and not connection.is_closed:
            try:
                done = send_buffers(link.socket, output)
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                    logger.warning("sending to %s failed: %s", connection.peer, error)
                self._close(link)
                return
            if not done:
                self._set_events(link, select.EPOLLOUT)
                return
            connection.note_sent()
            link.last_active_ms = self._now_ms
        if connection.is_closing:
            self._close(link)
        elif link.events != _READ and not connection.is_muted:
            self._set_events(link, _READ)

    def _set_events(self, link: Link, events: int) -> None:
        if events != link.events and not link.connection.is_closed:
            link.events = events
            self._epoll.modify(link.fd, events)

    def _close(self, link: Link) -> None:
        if self._links.get(link.fd) is link:
            del self._links[link.fd]
            link.connection.closed()
            self._epoll.unregister(link.fd)
            link.socket.close()

    def _accept(self, fd: int) -> None:
        sock, make_connection = self._listeners[fd]
        while True:
            try:
                accepted, address = sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ECONNABORTED:
                    continue  # the peer went away before it was accepted
                logger.error("cannot accept connections: %s; trying again in a second", error)
                self._epoll.modify(fd, 0)
                self._timers.schedule(
                    self._now_ms + ACCEPT_AGAIN_MS, lambda: self._accept_again(fd)
                )
                return
            try:
                self.adopt(accepted, peer_name(address), make_connection)
            except OSError as error:
                logger.warning("cannot serve %s: %s", peer_name(address), error)
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
                accepted.close()

    def _accept_again(self, fd: int) -> None:
        if fd in self._listeners:
            self._epoll.modify(fd, select.EPOLLIN)

    def _schedule_idle_check(self) -> None:
        every_ms = min(IDLE_CHECK_EVERY_MS, max(self._idle_ms_max // 2, 1))
        self._timers.schedule(self._clock.monotonic_ms() + every_ms, self._close_idle)

    def _close_idle(self) -> None:
        silent_since = self._clock.monotonic_ms() - self._idle_ms_max
        for link in list(self._links.values()):
            is_silent = link.last_active_ms < silent_since
            if is_silent and not link.connection.unanswered and not link.is_dirty:
                self._close(link)
        self._schedule_idle_check()


def run_due_timers(timers: Timers, now_ms: int) -> None:
    """Do what is due; what fails is logged, for the loop goes on."""
    try:
        timers.run_due(now_ms)
    except ExceptionGroup as failed:
        for failure in failed.exceptions:
            logger.error("%s", failure.__notes__[-1], exc_info=failure)
