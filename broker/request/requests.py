"""One request on its way through the broker, and how its answer finds the way back.

The protocols say what a request and the memos use of the connection and of the dispatcher, which
both stand above them: `network.connection.Connection` and `dispatch.Dispatcher`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

from ...protocol.codec.types import Struct
from ...runtime.clock import Clock
from .route import FramePart, Route

if TYPE_CHECKING:
    from ...protocol.codec.message import Encoder, Message
    from ...runtime.steps import Steps
    from ...security.authenticator.sasl_authenticator import SaslAuthenticator
    from .outcomes import Parked

logger = logging.getLogger(__name__)

LONG_ANSWER_BYTES: Final = 1 << 14
"""A shorter answer has elements that are freed in less than a step, in one go."""

BodyT_co = TypeVar("BodyT_co", covariant=True)


class Answerable(Protocol):
    """A request as far as the order of answers goes."""

    @property
    def buffers(self) -> Sequence[FramePart] | None:
        """The framed answer once it is there."""


class Accountable:
    """A request as far as quotas go.

    Attributes:
        frame_bytes: the size of its frame; set by the quotas' stage once the request waits.
        used_s: for how long it was worked on until then; the same holds.
    """

    __slots__ = ("frame_bytes", "used_s")

    frame_bytes: int
    used_s: float


class ConnectionMemo(Protocol):
    """What is known of a connection's requests of one API version (`fast_path.memo.Memo`)."""

    epoch: int

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Handle the request if it is one that is known; returns whether that was done."""

    def expects(self) -> bool:
        """Whether it learns the next request that takes the slow path, when that is answered."""

    def learn(self, request: Request[object], header: bytes, answer: Message) -> None:
        """Remember a request by its answer; neither is used any more."""


class ImplicitSession(Protocol):
    """What a connection's requests without a session have in common (KIP-227).

    Attributes:
        key: of the route that they come by.
    """

    key: int

    @property
    def body(self) -> object:
        """The request that it has decoded last."""

    def decode(self, frame: memoryview, position: int) -> object | None:
        """A request's body from a position on, as far as it is not known; None if all of it has
        to be decoded. A generator is work that returns the same: there is much that is new."""

    def close(self) -> None:
        """The connection is closed."""


class QuotaAccounting(Protocol):
    """The stage that keeps clients to their quotas (`quota_stage.QuotaStage`)."""

    def throttle(self, request: Request[object], response: Message) -> int:
        """Account for an answer; returns for how many ms its connection is muted."""

    def answered(
        self,
        connection: ClientConnection,
        client_id: str,
        request: Accountable | None,
        *,
        is_produce: bool,
        is_silent: bool = False,
    ) -> int:
        """Account for a request that is being answered; returns for how many ms to mute."""


class RequestStages(Protocol):
    """The dispatcher as its requests see it: the stages between a handler and the connection.

    Attributes:
        on_answer: looks at each answer and may replace it; for tests and faults.
        on_framed: may take an encoded answer over; for tests and faults.
        throttle: for how many ms the connection is muted after an answer (KIP-124).
        is_plain: whether there is none of these, no hook that looks at requests, and no quota.
        uses_memos: whether connections remember requests: not while there are hooks.
    """

    on_answer: OnAnswer | None
    on_framed: OnFramed | None
    throttle: Throttle | None
    is_plain: bool
    uses_memos: bool

    @property
    def quotas(self) -> QuotaAccounting | None:
        """Keeps clients to their quotas; None while there are none."""

    @property
    def clock(self) -> Clock:
        """The broker's."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back in a pass that begins so much later."""

    def read_unhandled(self, connection: ClientConnection, frame: memoryview) -> Request[object]:
        """A request that is to be refused whoever sends it. Raises ProtocolError."""

    def start_task(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run an async function beside the requests."""

    def begin(
        self, work: Steps[None], connection: ClientConnection, *, in_turn: bool = False
    ) -> None:
        """Do a connection's work: at once if it takes one step, else beside the other requests.

        Args:
            in_turn: the first step waits for its turn, too.
        """

    def answer_in_turn(self, request: Request[object], work: Steps[Message | Parked]) -> None:
        """Answer with what some work returns, whose first step, too, waits for its turn."""


class ClientConnection(Protocol):
    """The connection that a request came by: whose it is, and the order of its answers."""

    @property
    def dispatcher(self) -> RequestStages:
        """Where its frames go."""

    listener_name: str
    peer: str
    principal: str
    is_broker: bool
    challenge: bytes
    client_software: tuple[str, str]
    is_closed: bool
    is_parked: bool
    is_held: bool
    has_used_its_turn: bool
    turn_ends_ms: int
    throttles: int
    unsent_bytes: int
    unanswered: deque[Answerable]
    output: list[Any]
    memos: dict[int, ConnectionMemo]
    implicit_session: ImplicitSession | None
    on_closed: Callable[[], None] | None

    @property
    def authenticator(self) -> SaslAuthenticator | None:
        """What knows its logins; None: its listener speaks no SASL."""

    @property
    def peer_host(self) -> str:
        """The other side's address without its port."""

    def put_back(self, frame: memoryview) -> None:
        """Handle a frame again once what came before it is answered."""

    def note_answered(self) -> None:
        """Move answers that are next in order to the output."""

    def send_at_once(self, buffers: Sequence[FramePart], size: int) -> None:
        """Send the framed answer, of so many bytes, to a request that is next in order."""

    def throttle(self, throttle_ms: int) -> None:
        """Handle no more requests for so long."""

    def hold(self) -> None:
        """Handle no more requests until `release`."""

    def release(self) -> None:
        """Go on with the requests that wait."""

    def fail(self, reason: str) -> None:
        """Close for the peer's fault, once the answers due are sent."""

    def fail_login(self, reason: str) -> None:
        """Close as its login failed, once the answers due are sent."""


class Request(Accountable, Generic[BodyT_co]):
    """One request. Handlers read it and answer it, once.

    The type of its body is the handler's to know: what does not look at bodies takes a
    `Request[object]`.

    Attributes:
        body: the decoded message.
        connection: whom it came from; carries principal, listener and address.
        buffers: the framed answer once it is there.
        is_from_follower: whether it is another broker's Fetch.
        memo: what learns from the answer, and the frame's bytes between correlation id and body;
            None: nobody does.
    """

    is_long = False
    """Whether the body took more than a step to decode, and lies in memory of its own."""

    __slots__ = (
        "api_key",
        "api_version",
        "body",
        "buffers",
        "client_id",
        "connection",
        "correlation_id",
        "is_from_follower",
        "memo",
        "received_ms",
        "route",
    )

    def __init__(
        self,
        route: Route,
        correlation_id: int,
        client_id: str,
        body: BodyT_co,
        connection: ClientConnection,
    ) -> None:
        self.route = route
        self.api_key = route.api_key
        self.api_version = route.api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body
        self.connection = connection
        self.is_from_follower = False
        self.memo: tuple[ConnectionMemo, bytes] | None = None
        self.received_ms = connection.dispatcher.clock.monotonic_ms()
        self.buffers: list[FramePart] | None = None

    def answer(self, response: Message) -> None:
        """Complete, account for and send the response, when those before it are sent.

        An answer to a connection that was closed meanwhile is dropped.
        """
        assert self.buffers is None, f"{self!r} was answered twice"
        connection = self.connection
        if connection.is_closed:
            return
        throttle_ms = 0
        if not connection.dispatcher.is_plain:
            response, throttle_ms = self._complete(response)
        try:
            buffers = self.route.encode_answer(self.correlation_id, response)
        except Exception:
            self._fail_to_encode()
            return
        self.route.errors.count(response)
        self._send_unless_taken(buffers)
        if throttle_ms > 0:
            connection.throttle(throttle_ms)
        if self.memo is not None:
            memo, header = self.memo
            memo.learn(self, header, response)

    def answer_in_steps(self, response: Message) -> Steps[None]:
        """The same, as work that yields after each element of an array.

        What is long is freed in steps, too: the response, if its caller keeps no reference to it,
        and the request's body, which nobody asks for any more.
        """
        assert self.buffers is None, f"{self!r} was answered twice"
        if self.connection.is_closed:
            return
        response, throttle_ms = self._complete(response)
        try:
            buffers = yield from self.route.encode_in_steps(self.correlation_id, response)
        except Exception:
            self._fail_to_encode()
            return
        yield from self.route.errors.count_in_steps(response)
        if self.connection.is_closed:
            return
        self._send_unless_taken(buffers)
        if throttle_ms > 0:
            self.connection.throttle(throttle_ms)
        if self.memo is not None:
            memo, header = self.memo
            memo.learn(self, header, response)
        if self.is_long or sum(map(len, buffers)) >= LONG_ANSWER_BYTES:
            kept: list[object] = [response, self.body]
            del response, self.body
            yield from _free_in_steps(kept)

    def answer_after(self, work: Steps[Message]) -> None:
        """Answer with what some work returns, in steps."""
        answering = self._work_and_answer(work)
        self.connection.dispatcher.begin(answering, self.connection, in_turn=self.is_long)

    def answer_in_turn(self, work: Steps[Message | Parked]) -> None:
        """The same, for work that many requests may have at the same time."""
        self.connection.dispatcher.answer_in_turn(self, work)

    def _work_and_answer(self, work: Steps[Message]) -> Steps[None]:
        yield from self.answer_in_steps((yield from work))

    def _complete(self, response: Message) -> tuple[Message, int]:
        """What hook and throttle make of a response, and for how long the connection is muted."""
        stages = self.connection.dispatcher
        if stages.on_answer is not None:
            response = stages.on_answer(self, response)
        throttle_ms = 0
        if stages.quotas is not None:
            throttle_ms = stages.quotas.throttle(self, response)
        if stages.throttle is not None:
            throttle_ms = max(throttle_ms, stages.throttle(self, response))
        if throttle_ms > 0 and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        return response, throttle_ms

    def _fail_to_encode(self) -> None:
        """A bug of ours that must not end the others' connections."""
        logger.exception("the answer to %r cannot be encoded", self)
        self.connection.fail("its answer cannot be encoded")

    def answer_counted(self, response: Message, encode: Encoder) -> None:
        """Complete and send a response whose errors are counted already.

        Args:
            response: the message.
            encode: encodes it, as it is none of the general kind.
        """
        response, throttle_ms = self._complete(response)
        self._send_unless_taken(self.route.framed(self.correlation_id, encode(response)))
        if throttle_ms > 0:
            self.connection.throttle(throttle_ms)

    def answer_nothing(self) -> None:
        """Let the connection go on without an answer."""
        connection = self.connection
        if connection.is_closed:
            return
        quotas = connection.dispatcher.quotas
        throttle_ms = 0
        if quotas is not None:
            throttle_ms = quotas.answered(
                connection, self.client_id, self, is_produce=True, is_silent=True
            )
        self._send_unless_taken([])
        if throttle_ms > 0:
            connection.throttle(throttle_ms)

    def _send_unless_taken(self, buffers: list[FramePart]) -> None:
        self._note_time()
        hook = self.connection.dispatcher.on_framed
        if hook is None or not hook(self, buffers):
            self.send(buffers)

    def send(self, buffers: list[FramePart]) -> None:
        """Send a framed answer when those before it on the connection are sent."""
        self.buffers = buffers
        connection = self.connection
        for buffer in buffers:
            connection.unsent_bytes += len(buffer)
        connection.note_answered()

    def _note_time(self) -> None:
        connection = self.connection
        now_ms = connection.dispatcher.clock.monotonic_ms()
        if now_ms >= connection.turn_ends_ms:
            connection.has_used_its_turn = True
        times = self.route.times
        if self.is_from_follower and self.route.follower_times is not None:
            times = self.route.follower_times
        times.record(now_ms - self.received_ms)

    def take_over(self, other: Answerable, elapsed_ms: int) -> None:
        """Stand in the place of the same request as a memo took it, some time ago.

        What was not accounted for then counts for this one.
        """
        self.received_ms -= elapsed_ms
        unanswered = self.connection.unanswered
        unanswered[unanswered.index(other)] = self
        self.frame_bytes = getattr(other, "frame_bytes", 0)
        self.used_s = getattr(other, "used_s", 0.0)

    def __repr__(self) -> str:
        return (
            f"<{self.route.name} v{self.api_version} from {self.client_id!r} "
            f"at {self.connection.peer}, correlation id {self.correlation_id}>"
        )


def _free_in_steps(kept: list[object]) -> Steps[None]:
    """Give a message's memory back: that of 50,000 elements takes 20 ms in one go.

    Args:
        kept: holds the last reference to it; is emptied. Who else has one finds it unchanged.
    """
    while kept:
        each = kept.pop()
        if isinstance(each, Struct):
            for slot in type(each).__slots__:
                value = getattr(each, slot)
                if type(value) is list and value and isinstance(value[0], Struct):
                    kept += value
        del each
        yield


class LongRequest(Request[BodyT_co]):
    """A request whose body took more than a step to decode: its answer is as long, mostly.

    What answers it at the end of its wait, often while others are flushed, has it encoded beside
    the other requests.
    """

    is_long = True

    __slots__ = ()

    def answer(self, response: Message) -> None:
        """Complete, account for and send the response, in steps."""
        answering = self.answer_in_steps(response)
        self.connection.dispatcher.begin(answering, self.connection, in_turn=True)


OnRequest: TypeAlias = Callable[[Request[object]], bool]
"""Sees a request before its handler does, and may return True to say that it took it over."""
OnAnswer: TypeAlias = "Callable[[Request[object], Message], Message]"
"""Sees a request's response, and returns the one to send instead."""
OnFramed: TypeAlias = Callable[[Request[object], list[FramePart]], bool]
"""Sees an encoded answer, and may return True to say that it took it over."""
Throttle: TypeAlias = "Callable[[Request[object], Message], int]"
"""For how many ms a request's connection is muted, once its response is sent; 0 for not."""
