"""One client's connection, sans-IO: bytes in, requests out; answers in, buffers out, in order.

A transport owns the socket. It asks `reader` where to receive to, hands over frames, and
sends `output` at the end of a pass. At most one request is parked, waiting for a
purgatory or a task; the frames behind it wait in `backlog`, as on Kafka's muted channels.
They wait there too when the connection has used its turn, or has not read the answers it was
sent. Produce requests are the exception: any number of them wait for replicas
at once, so that followers fetch many in one go. Each is appended in its turn and answered in
its turn, and whatever else comes behind them waits.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...protocol.errors import ProtocolError
from ...protocol.frames import FrameReader
from ..request.dispatch import Dispatcher
from ..request.requests import Answerable, ClientConnection, ConnectionMemo, ImplicitSession
from ..request.route import FramePart
from .fair_order import REQUESTS_PER_TURN_MAX
from .waiting_frames import WaitingFrames

if TYPE_CHECKING:
    from ...security.authenticator.sasl_authenticator import SaslAuthenticator

logger = logging.getLogger(__name__)

ANONYMOUS = "User:ANONYMOUS"
NO_SOFTWARE = ("unknown", "unknown")
"""Name and version of a client that has not said them (ClientInformation.EMPTY)."""

PRODUCES_WAITING_MAX = 256
"""So many of one connection wait for replicas before no more are read."""
UNSENT_BYTES_MAX = 64 * 1024
"""Once answers of this size wait to be sent, no more requests are handled: a client that
sends and does not read holds up nobody but itself. One that does read has used its turn."""
NEVER_MS = 1 << 62


ConnectionFactory = Callable[[str, Callable[[], None]], "Connection"]
"""Makes the connection of an accepted socket from its peer's name and its `on_ready`."""


class ListenerTraffic:
    """How many connections a listener has, and had.

    Attributes:
        accepted: since the start.
        streams: open ones that the epoll transport does not drive.
    """

    __slots__ = ("accepted", "streams")

    def __init__(self) -> None:
        self.accepted = 0
        self.streams = 0


class Connection:
    """The broker's side of one connection, of a client that need not log in.

    Args:
        dispatcher: routes frames to handlers.
        listener_name: the listener it came in by; decides which addresses it gets.
        peer: address and port of the other side, for log lines.
        frame_bytes_max: `socket.request.max.bytes`.
        on_ready: called when there is output to send or a backlog to go on with, that is
            when an answer arrives; the transport then makes sure of a pass.

    Attributes:
        authenticator: knows the logins of a `SaslConnection`; None for all others.
        has_used_its_turn: whether others come before its next frames.
        turn_ends_ms: monotonic time; the request that is answered then or later ends the turn. The
            transport sets it.
        requests_per_turn: so many end the turn as well.
        throttles: how many last still.
    """

    authenticator: SaslAuthenticator | None = None

    __slots__ = (
        "_on_ready",
        "backlog",
        "challenge",
        "client_software",
        "dispatcher",
        "has_used_its_turn",
        "implicit_session",
        "is_broker",
        "is_closed",
        "is_closing",
        "is_held",
        "is_parked",
        "listener_name",
        "memos",
        "on_closed",
        "output",
        "peer",
        "principal",
        "reader",
        "requests_per_turn",
        "throttles",
        "turn_ends_ms",
        "unanswered",
        "unsent_bytes",
    )

    def __init__(
        self,
        dispatcher: Dispatcher,
        listener_name: str,
        peer: str,
        frame_bytes_max: int,
        on_ready: Callable[[], None],
    ) -> None:
        self.dispatcher = dispatcher
        self.listener_name = listener_name
        self.peer = peer
        self.principal = ANONYMOUS
        self.is_broker = False
        self.challenge = b""
        self.client_software = NO_SOFTWARE
        self.reader = FrameReader(frame_bytes_max)
        self.output: list[Any] = []
        self.unsent_bytes = 0
        self.has_used_its_turn = False
        self.turn_ends_ms = NEVER_MS
        self.requests_per_turn = REQUESTS_PER_TURN_MAX
        self.unanswered: deque[Answerable] = deque()
        self.backlog: deque[WaitingFrames | FrameReader] = deque()
        self.memos: dict[int, ConnectionMemo] = {}
        self.implicit_session: ImplicitSession | None = None
        self.on_closed: Callable[[], None] | None = None
        self.is_parked = False
        self.is_held = False
        self.throttles = 0
        self.is_closing = False
        self.is_closed = False
        self._on_ready = on_ready

    @property
    def _dispatch(self) -> Callable[[ClientConnection, memoryview], None]:
        """Where its frames go."""
        return self.dispatcher.entry

    @property
    def has_logged_in(self) -> bool:
        """Whether its client has logged in, or need not."""
        return True

    @property
    def peer_host(self) -> str:
        """The other side's address without its port."""
        return self.peer.rpartition(":")[0].strip("[]")

    def process(self, frames: Sequence[memoryview]) -> None:
        """Handle frames in their order, up to one that must wait, or as many as a turn allows.

        The frames may lie in memory that is reused after the pass: those that wait are
        copied. A peer that breaks the protocol is to be closed (`is_closing`), after a log
        line that says why.
        """
        dispatch = self._dispatch
        self.has_used_its_turn = False
        for index, frame in enumerate(frames):
            if self.is_closing:
                return
            if (  # `_must_wait`, written out: this is the way of every frame
                self.is_parked
                or self.has_used_its_turn
                or index >= self.requests_per_turn
                or self.unsent_bytes >= UNSENT_BYTES_MAX
                or len(self.unanswered) >= PRODUCES_WAITING_MAX
            ):
                self.backlog.append(WaitingFrames(frames[index:]))
                self._note_turn(index)
                break
            try:
                dispatch(self, frame)
            except ProtocolError as error:
                self.fail(str(error))
                return
            except Exception:
                self._fail_for_fault()
                return
        reader = self.reader
        if reader.rest is not None:
            self.backlog.append(reader)
            self._note_turn(len(frames))
        elif reader.failure is not None:
            self.close_if_broken()

    def process_backlog(self) -> None:
        """Go on with the frames that waited, as far as the turn goes."""
        dispatch = self._dispatch
        handled = 0
        while self.backlog and not self._must_wait and not self.is_closing:
            if handled >= self.requests_per_turn:
                break
            waiting = self.backlog[0]
            frame = waiting.take()
            if not waiting:
                self.backlog.popleft()
            try:
                dispatch(self, frame)
            except ProtocolError as error:
                self.fail(str(error))
            except Exception:
                self._fail_for_fault()
            handled += 1
        self._note_turn(handled)
        self.close_if_broken()

    def _note_turn(self, handled: int) -> None:
        """Requests or bytes may have used the turn up, as time may have."""
        if handled >= self.requests_per_turn or self.unsent_bytes >= UNSENT_BYTES_MAX:
            self.has_used_its_turn = True

    def close_if_broken(self) -> None:
        """Close for a frame that could not be one, once those before it are answered."""
        failure = self.reader.failure
        if failure is not None and not (self.is_closing or self.backlog or self.unanswered):
            self.fail(failure)

    @property
    def _must_wait(self) -> bool:
        return (
            self.is_parked
            or self.has_used_its_turn
            or self.unsent_bytes >= UNSENT_BYTES_MAX
            or len(self.unanswered) >= PRODUCES_WAITING_MAX
        )

    @property
    def is_muted(self) -> bool:
        """Whether nothing is to be read before answers have gone out."""
        return bool(
            self.is_parked
            or self.backlog
            or self.output
            or len(self.unanswered) >= PRODUCES_WAITING_MAX
        )

    def put_back(self, frame: memoryview) -> None:
        """Handle a frame again once what came before it is answered."""
        self.backlog.appendleft(WaitingFrames([frame]))
        self.is_parked = True

    @property
    def may_go_on(self) -> bool:
        """Whether frames wait and nothing else is to be waited for any more."""
        return bool(self.backlog) and not (self.unanswered or self.output or self.is_held)

    def start_turn(self, ends_ms: int = NEVER_MS) -> None:
        """Requests may be handled again, until that time."""
        self.has_used_its_turn = False
        self.turn_ends_ms = ends_ms

    def on_memory(self) -> None:
        """There may be memory for the request that is coming: go on reading it."""
        if self.reader.may_receive():
            self._on_ready()

    def note_sent(self) -> None:
        """All output has been sent."""
        self.unsent_bytes = 0

    def send_at_once(self, buffers: Sequence[FramePart], size: int) -> None:
        """Send the framed answer, of so many bytes, to a request that nothing here is before."""
        self.output += buffers
        self.unsent_bytes += size
        self._on_ready()

    def throttle(self, throttle_ms: int) -> None:
        """Handle no more requests for so long; what is due is sent (KIP-219)."""
        self.hold()
        if not self.throttles:
            self.dispatcher.throttled += 1
        self.throttles += 1
        self.dispatcher.call_later(throttle_ms, self._end_throttle)

    def _end_throttle(self) -> None:
        """Go on once no throttle lasts any more: pipelined requests may have one each."""
        self.throttles -= 1
        if not self.throttles:
            self.dispatcher.throttled -= 1
            self.release()

    def hold(self) -> None:
        """Handle no more requests until `release`; what is due is sent."""
        self.is_held = self.is_parked = True

    def release(self) -> None:
        """Go on with the requests that wait."""
        self.is_held = False
        self.is_parked = bool(self.unanswered)
        self._on_ready()

    def note_answered(self) -> None:
        """Move answers that are next in order to the output."""
        unanswered = self.unanswered
        output = self.output
        while unanswered:
            buffers = unanswered[0].buffers
            if buffers is None:
                break
            output.extend(buffers)
            unanswered.popleft()
        if not unanswered:
            self.is_parked = self.is_held
        self._on_ready()

    def fail(self, reason: str) -> None:
        """Close for the peer's fault: nothing more is read; answers due so far are sent."""
        logger.warning("closing the connection from %s: %s", self.peer, reason)
        self._close_behind_answers()

    def fail_login(self, reason: str) -> None:
        """The same where a login failed. Its lines are limited apart from all others: whoever
        guesses passwords must not hide why other connections are closed."""
        logger.warning("closing the connection from %s, whose login failed: %s", self.peer, reason)
        self._close_behind_answers()

    def _close_behind_answers(self) -> None:
        self.is_closing = True
        self.backlog.clear()
        self._on_ready()

    def _fail_for_fault(self) -> None:
        """Close for a fault of ours, which must not end others' connections."""
        logger.exception("a request from %s could not be handled", self.peer)
        self.fail("its request could not be handled")

    def closed(self) -> None:
        """The transport has closed the socket; what is still answered is dropped."""
        self.is_closed = True
        self.reader.close()
        self.output.clear()
        self.backlog.clear()
        self.unanswered.clear()
        self.memos.clear()
        self._on_ready = _nobody_waits  # it is the transport's, and knows this: a cycle
        if self.implicit_session is not None:
            self.implicit_session.close()
        if self.on_closed is not None:
            self.on_closed()


def _nobody_waits() -> None:
    """An answer comes to a connection that is closed."""


def peer_name(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """Host and port as one text, an IPv6 host in brackets."""
    host, port = address[0], address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
