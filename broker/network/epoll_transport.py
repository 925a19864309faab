"""The fast transport: one task that owns an epoll of all plain TCP connections.

Parking in trio is what costs, so it is skipped, not worked around: the task polls its own
epoll, and waits in trio, on that epoll's descriptor, only when nothing has come for a moment
(`AdaptivePoller`).
A pass gives the ready connections their turns, fairly and not for long (`FairOrder`), lets the
brokers flush, and sends once. A turn receives once and handles the whole frames, or goes on with
what was left of them, or with sending. Who gets no turn in a pass is found ready by the next.
"""

from __future__ import annotations

import errno
import logging
import select
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence

import trio

from ...runtime.clock import Clock, precise_seconds, processor_seconds
from ...runtime.timers import Timers, repeat
from .adaptive_poller import AdaptivePoller
from .connection import UNSENT_BYTES_MAX, Connection, ConnectionFactory, peer_name
from .connection_quotas import (
    ACCEPT_AGAIN_MS,
    ConnectionQuotas,
    ConnectionThrottled,
    TooManyConnections,
    host_of,
)
from .fair_order import (
    PASS_MS,
    REQUESTS_PER_TURN_MAX,
    FairOrder,
    Turns,
    fits_in_pass,
    requests_per_turn,
)
from .request_memory import RECEIVE_BYTES, RequestMemory
from .send_buffers import in_memory_bytes, send_buffers, send_some

logger = logging.getLogger(__name__)

TAIL_BYTES = 1 << 20
"""Most that is received of a long request in one pass."""
ARENA_BYTES = 16 * RECEIVE_BYTES
"""What one pass can receive; pages never touched take no memory."""
CHECKPOINT_EVERY_MS = 3
"""Other tasks wait no longer than this while requests keep coming."""
TASK_ROUNDS = 3
"""Who waits for a socket of another broker receives, hands on what came, and sends."""
IDLE_CHECK_EVERY_MS = 30_000
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
ACCEPTS_PER_PASS_MAX = 16
"""Clients can connect faster than they are accepted: those that are served come in between."""
MEASURED_TURNS_MIN = 32
"""So many turns of a new connection are measured, also alone, or fewer if these are short: others
may come at any time, before which those of short turns are served first."""
TIMERS_AT_A_TIME = 16
"""So many of those that are due are run before sockets are looked at: a millisecond or two."""

RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose peer is reset, since it is not served."""

_IN = select.EPOLLIN
_READ = select.EPOLLIN | select.EPOLLRDHUP
_GONE = select.EPOLLHUP | select.EPOLLERR
"""Both directions are over. A peer that only will send no more (EPOLLRDHUP) is still owed
answers to what it has sent; that it is done shows when a receive brings nothing."""


class Link:
    """A socket and the connection that it carries."""

    __slots__ = (
        "_transport",
        "accepted_ms",
        "connection",
        "events",
        "fd",
        "host",
        "is_dirty",
        "last_active_ms",
        "measured_turns",
        "socket",
        "turns",
        "unread_bytes",
    )

    def __init__(
        self,
        transport: EpollTransport,
        sock: socket.socket,
        peer: str,
        now_ms: int,
        turns: Turns,
    ) -> None:
        self._transport = transport
        self.host = host_of(peer)
        self.accepted_ms = now_ms
        self.socket = sock
        self.fd = sock.fileno()
        self.events = _READ
        self.is_dirty = False
        self.unread_bytes = 0
        self.last_active_ms = now_ms - 1  # before it was accepted: it was not used yet
        self.turns = turns
        self.measured_turns = 0
        self.connection: Connection

    @property
    def listener_name(self) -> str:
        """The listener by which it came."""
        return self.connection.listener_name

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way and no answer unsent."""
        connection = self.connection
        return not (connection.unanswered or connection.output or connection.backlog)

    @property
    def has_logged_in(self) -> bool:
        """Whether its client has logged in, or need not."""
        return self.connection.has_logged_in

    @property
    def last_used_ms(self) -> int:
        """When it last sent or received; -1 if it never did."""
        return self.last_active_ms if self.last_active_ms >= self.accepted_ms else -1

    def evict(self) -> None:
        """Close it now."""
        self._transport.close_link(self)

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
        quotas: say how many connections there may be.
        memory: how much there is for requests that are coming.
        idle_ms_max: connections silent for longer are closed (`connections.max.idle.ms`);
            negative for never.
        seconds: measures what turns take.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        flush: Callable[[], None],
        quotas: ConnectionQuotas,
        memory: RequestMemory,
        idle_ms_max: int = -1,
        seconds: Callable[[], float] = processor_seconds,
    ) -> None:
        self.dirty: list[Link] = []
        self._unfinished: list[Link] = []
        self._clock = clock
        self._timers = timers
        self._flush = flush
        self._quotas = quotas
        self._memory = memory
        self._idle_ms_max = idle_ms_max
        self._paused: dict[int, None] = {}
        """Listeners from which nothing is accepted for a while."""
        quotas.on_slot.append(self._accept_from_paused)
        self._seconds = seconds
        self._order = FairOrder()
        self._was_contended = False
        self._pass_ends_ms = 0
        self._epoll = select.epoll()
        self._links: dict[int, Link] = {}
        self._known: dict[int, Link] = {}
        """Those whose turns need not be measured while nobody else is ready."""
        self._watched = select.epoll()
        """Sockets that tasks read, each reported once for what comes."""
        self._epoll.register(self._watched, select.EPOLLIN)
        self._task_rounds = 0
        """In so many passes the tasks have their turns, whatever else there is to do."""
        self._listeners: dict[int, tuple[socket.socket, str, ConnectionFactory]] = {}
        self._arena = memoryview(bytearray(ARENA_BYTES))
        self._parking: trio.CancelScope | None = None
        self._is_stopping = False
        self._poller = AdaptivePoller(self._epoll)
        self._pass_bytes = 0
        self._now_ms = clock.monotonic_ms()
        if idle_ms_max >= 0:
            every_ms = min(IDLE_CHECK_EVERY_MS, max(idle_ms_max // 2, 1))
            repeat(timers, clock, lambda: every_ms, self._close_idle)

    # -- sockets ---------------------------------------------------------------------

    def listen(
        self, sock: socket.socket, listener_name: str, make_connection: ConnectionFactory
    ) -> None:
        """Accept connections from a listening socket from now on."""
        sock.setblocking(False)
        self._listeners[sock.fileno()] = (sock, listener_name, make_connection)
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def adopt(self, sock: socket.socket, peer: str, make_connection: ConnectionFactory) -> Link:
        """Serve an accepted socket.

        Raises:
            TooManyConnections: it is one too many.
        """
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self, sock, peer, self._now_ms, self._order.newcomer())
        link.connection = make_connection(peer, link.on_ready)
        self._quotas.admit(link, link.fd)
        self._links[link.fd] = link
        self._epoll.register(link.fd, _READ)
        return link

    def watch(self, sock: trio.socket.SocketType) -> None:
        """Let the tasks have their turns when something comes on a socket that one of them reads.

        They have none else while a nap lasts, or requests keep coming: a follower would have its
        leader's records, and all that waits for them, milliseconds late.
        """
        self._watched.register(sock.fileno(), _READ | select.EPOLLET)

    def close_listeners(self) -> None:
        """Accept no more."""
        for sock, *_ in self._listeners.values():
            self._epoll.unregister(sock)
            sock.close()
        self._listeners.clear()

    def close(self) -> None:
        """Close every socket and the epoll itself."""
        self._is_stopping = True
        self.close_listeners()
        for link in list(self._links.values()):
            self.close_link(link)
        self._epoll.close()
        self._watched.close()

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
        for link in self._links.values():  # begun again after a failure: a pass was broken off
            link.is_dirty = False
            link.on_ready()
        while not self._is_stopping:
            events = self._epoll.poll(0)
            if not events and not self._unfinished:
                if not self._task_rounds:
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
            if now_ms >= checkpoint_at_ms or self._task_rounds:
                self._task_rounds = max(self._task_rounds - 1, 0)
                await trio.lowlevel.checkpoint()
                checkpoint_at_ms = now_ms + CHECKPOINT_EVERY_MS

    def time_jumped(self, milliseconds: int) -> None:
        """The clock was advanced: nobody has been silent for it."""
        for link in self._links.values():
            link.last_active_ms += milliseconds
            link.accepted_ms += milliseconds

    def stop(self) -> None:
        """Make `run` return after the pass it is in."""
        self._is_stopping = True
        self._wake()

    def finish_outside_work(self) -> None:
        """Flush and send what a task left behind; to be called by it when it is done."""
        self._pass_ends_ms = 0  # backlogs wait for a pass of the loop's own
        self._finish_pass()
        if self._unfinished:
            self._wake()
        else:
            self._wake_for_timers()

    async def _park(self, epoll_fd: int) -> None:
        """Wait in trio for a socket or the next timer, while other tasks run."""
        watched = self._watched
        self._epoll.modify(watched, 0)  # trio itself wakes who reads those
        try:
            with trio.CancelScope(deadline=self._parking_deadline()) as scope:
                self._parking = scope
                await trio.lowlevel.wait_readable(epoll_fd)
            self._parking = None
        finally:
            if watched.poll(0):  # mostly handled meanwhile, but for the last
                self._task_rounds = 1
            self._epoll.modify(watched, select.EPOLLIN)

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

    def run_pass(self, events: Sequence[tuple[int, int]]) -> None:
        """Give the ready connections their turns, flush, go on with backlogs, send."""
        self._pass_ends_ms = self._now_ms + PASS_MS
        if len(events) == 1 and not self._unfinished:  # as most passes are: nobody else is ready
            fd, event = events[0]
            link = self._known.get(fd)
            if link is not None and event == _IN:
                self._was_contended = False
                link.connection.requests_per_turn = REQUESTS_PER_TURN_MAX
                self._pass_bytes = self._receive(link, event, 0)
                self._finish_pass()
                return
        self._give_turns(events)
        self._finish_pass()

    def _give_turns(self, events: Sequence[tuple[int, int]]) -> None:
        """Turns in their order, until the pass has taken its time."""
        ready, self._unfinished = dict.fromkeys(self._unfinished, 0), []
        for fd, event in events:
            found = self._links.get(fd)
            if found is not None:
                ready[found] = event
            elif fd in self._listeners:
                self._accept(fd)
            elif fd == self._watched.fileno():
                self._watched.poll(0)
                self._task_rounds = TASK_ROUNDS
        if not self._was_contended:
            self._was_contended = True
            self._order.note_idle()
        order = self._order.sorted(ready)
        requests = requests_per_turn(len(order) or 1)
        arena_position = 0
        began = now = self._seconds()
        for index, link in enumerate(order):
            if index and not fits_in_pass(link, now - began):
                self._unfinished += [each for each in order[index:] if each.connection.backlog]
                break
            if arena_position > ARENA_BYTES - RECEIVE_BYTES:
                self._finish_pass()
                arena_position = 0
                now = self._seconds()
            link.connection.requests_per_turn = requests
            taken, is_request = self._give_turn(link, ready[link], arena_position)
            arena_position += taken
            ended = self._seconds()
            self._order.note_turn(link, ended - now, is_request=is_request)
            link.measured_turns += 1
            is_known = link.turns.saved_seconds >= 0 or link.measured_turns >= MEASURED_TURNS_MIN
            if is_known and not link.connection.is_closed:  # its descriptor may be another's soon
                self._known[link.fd] = link
            now = ended
        self._pass_bytes = arena_position

    def _give_turn(self, link: Link, event: int, arena_position: int) -> tuple[int, bool]:
        """Send, go on or receive.

        Returns how much of the arena that took, and whether a request was handled, or its beginning
        received.
        """
        connection = link.connection
        if event & select.EPOLLOUT:
            link.last_active_ms = self._now_ms
            self._send(link)
        if connection.backlog and connection.may_go_on:
            connection.start_turn(self._pass_ends_ms)
            connection.process_backlog()
            link.on_ready()
            return 0, True
        if event & ~select.EPOLLOUT and not connection.is_closed:
            taken = self._receive(link, event, arena_position)
            return taken, taken > 0
        return 0, False

    def _finish_pass(self) -> None:
        self._flush()
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for link in dirty:
                link.is_dirty = False
                connection = link.connection
                try:
                    if connection.reader.failure is not None:
                        connection.close_if_broken()
                    self._send(link)
                    if connection.backlog and connection.may_go_on:
                        self._go_on(link)
                except Exception:  # one connection's, which must not end the others
                    logger.exception("the connection from %s failed", connection.peer)
                    self.close_link(link)
                if connection.backlog and connection.may_go_on:
                    self._go_on(link)

    def _go_on(self, link: Link) -> None:
        """Handle what waited for an answer that has gone out: now, or in the link's next turn."""
        connection = link.connection
        if connection.has_used_its_turn or self._clock.monotonic_ms() >= self._pass_ends_ms:
            self._unfinished.append(link)
            return
        connection.turn_ends_ms = self._pass_ends_ms
        connection.process_backlog()
        self._flush()
        link.on_ready()

    def _receive(self, link: Link, event: int, arena_position: int) -> int:
        """Receive once and handle the frames; returns how much of the arena that took."""
        connection = link.connection
        if connection.is_muted:
            # Its next request has come before its last one is answered: Kafka mutes the
            # channel, so do we. Most clients wait, and spare us the two system calls.
            self._stop_reading(link, event)
            return 0
        try:
            region = connection.reader.tail_region()
            if region is None:
                region = self._arena[arena_position : arena_position + self._memory.receive_bytes]
                size = link.socket.recv_into(region)
                if size:
                    connection.turn_ends_ms = self._pass_ends_ms
                    connection.process(
                        connection.reader.feed(region[:size], connection.requests_per_turn)
                    )
                    taken = size
            elif not region:
                self._stop_reading(link, event)  # until there is memory for its request
                return 0
            else:
                size, taken = link.socket.recv_into(region[:TAIL_BYTES]), 0
                if size:
                    frame = connection.reader.feed_tail(size)
                    connection.turn_ends_ms = self._pass_ends_ms
                    connection.process(() if frame is None else (frame,))
        except BlockingIOError:
            return 0
        except OSError:
            self.close_link(link)
            return 0
        if not size:
            self.close_link(link)
            return 0
        link.last_active_ms = self._now_ms
        return taken

    def _stop_reading(self, link: Link, event: int) -> None:
        """Read no more of a connection until it is ready."""
        if event & _GONE:
            self.close_link(link)
        else:
            self._set_events(link, link.events & ~_READ)

    def _send(self, link: Link) -> None:
        """Send all output; what the socket does not take waits for it to be writable."""
        connection = link.connection
        output = connection.output
        if output and not connection.is_closed:
            try:
                if connection.unsent_bytes < UNSENT_BYTES_MAX:
                    done = send_buffers(link.socket, output)
                elif self._clock.monotonic_ms() < self._pass_ends_ms:
                    done = send_some(link.socket, output)
                else:
                    done = False  # it is much, and others wait: it gets a turn for it
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                    logger.warning("sending to %s failed: %s", connection.peer, error)
                self.close_link(link)
                return
            if not done:
                self._set_events(link, select.EPOLLOUT)
                self._note_unread(link)
                return
            connection.note_sent()
            link.last_active_ms = self._now_ms
        if connection.is_closing:
            self.close_link(link)
        elif link.events != _READ:
            if link.unread_bytes and not output:
                link.unread_bytes = 0
                self._quotas.note_all_read(link)
            if not connection.is_muted:
                self._set_events(link, _READ)
            elif link.events & select.EPOLLOUT:
                self._set_events(link, 0)

    def _note_unread(self, link: Link) -> None:
        unread = in_memory_bytes(link.connection.output)
        took_some = link.unread_bytes != unread
        link.unread_bytes = unread
        self._quotas.note_unread(link, unread, took_some=took_some)

    def _set_events(self, link: Link, events: int) -> None:
        if events != link.events and not link.connection.is_closed:
            link.events = events
            self._epoll.modify(link.fd, events)

    def close_link(self, link: Link) -> None:
        """Close a connection, unless that was done."""
        if self._links.get(link.fd) is link:
            del self._links[link.fd]
            self._known.pop(link.fd, None)
            self._epoll.unregister(link.fd)
            link.socket.close()
            link.connection.closed()
            self._quotas.release(link)

    def _accept(self, fd: int) -> None:
        sock, listener_name, make_connection = self._listeners[fd]
        has_made_way = False
        for _ in range(ACCEPTS_PER_PASS_MAX):
            if not self._quotas.has_slot(listener_name):
                self._pause(fd, self._quotas.accept_again_ms(listener_name))
                return
            try:
                accepted, address = sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ECONNABORTED:
                    continue  # the peer went away before it was accepted
                if error.errno in OUT_OF_DESCRIPTORS and not has_made_way:
                    has_made_way = self._quotas.make_way()
                    if has_made_way:
                        continue
                logger.error("cannot accept connections: %s; trying again in a second", error)
                self._pause(fd)
                return
            try:
                self.adopt(accepted, peer_name(address), make_connection)
            except ConnectionThrottled as throttled:
                self._close_later(accepted, throttled.close_in_ms)
            except TooManyConnections:
                accepted.close()
            except Exception as error:
                logger.warning("cannot serve %s: %s", peer_name(address), error)
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
                accepted.close()
            if has_made_way:
                return  # without descriptors accepting fails even where nobody waits

    def _pause(self, fd: int, again_ms: int = ACCEPT_AGAIN_MS) -> None:
        """Accept nothing until a connection ends, or for a moment: settings may change."""
        self._epoll.modify(fd, 0)
        self._paused[fd] = None
        self._timers.schedule(self._now_ms + again_ms, self._accept_from_paused)

    def _close_later(self, throttled: socket.socket, close_in_ms: int) -> None:
        """Close a connection that came too fast, so that its client waits for that."""
        self._quotas.throttled += 1

        def close() -> None:
            throttled.close()
            self._quotas.throttled -= 1

        self._timers.schedule(self._now_ms + close_in_ms, close)

    def _accept_from_paused(self) -> None:
        if self._paused:
            paused, self._paused = self._paused, {}
            for fd in paused.keys() & self._listeners.keys():
                self._epoll.modify(fd, select.EPOLLIN)

    def _close_idle(self) -> None:
        silent_since = self._clock.monotonic_ms() - self._idle_ms_max
        for link in list(self._links.values()):
            is_silent = link.last_active_ms < silent_since
            if is_silent and not link.connection.unanswered and not link.is_dirty:
                self.close_link(link)


def run_due_timers(timers: Timers, now_ms: int, most: int = TIMERS_AT_A_TIME) -> None:
    """Do what is due, or the first of it; what fails is logged, for the loop goes on."""
    try:
        timers.run_due(now_ms, most)
    except ExceptionGroup as failed:
        for failure in failed.exceptions:
            logger.error("%s", failure.__notes__[-1], exc_info=failure)
