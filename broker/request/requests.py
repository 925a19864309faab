"""One request on its way through the broker, and how its answer finds the way back.

The protocols say what a request and the memos use of the connection and of the dispatcher, which
both stand above them: `network.connection.Connection` and `dispatch.Dispatcher`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ...runtime.clock import Clock
from .route import FramePart, Route

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

logger = logging.getLogger(__name__)

BodyT_co = TypeVar("BodyT_co", covariant=True)


class Answerable(Protocol):
    """A request as far as the order of answers goes."""

    @property
    def buffers(self) -> Sequence[FramePart] | None:
        """The framed answer once it is there."""


class ConnectionMemo(Protocol):
    """What is known of a connection's requests of one API version (`fast_path.memo.Memo`)."""

    epoch: int

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Handle the request if it is one that is known; returns whether that was done."""

    def learn(
        self, request: Request[object], frame: memoryview, position: int, body: object
    ) -> None:
        """Remember a request that took the slow path, and its body from a position on."""


class FetchFastPath(Protocol):
    """What is known of a connection's fetches without a session."""

    misses: int

    def recognize(self, route: Route, frame: memoryview, position: int) -> Any:
        """A body that is not decoded, if the request is like those before; else None."""

    def close(self) -> None:
        """The connection is closed."""


class RequestStages(Protocol):
    """The dispatcher as its requests see it: the stages between a handler and the connection.

    Attributes:
        on_answer: looks at each answer and may replace it; for tests and faults.
        on_framed: may take an encoded answer over; for tests and faults.
        throttle: for how many ms the connection is muted after an answer (KIP-124).
        is_plain: whether there is none of these, nor a hook that looks at requests.
    """

    on_answer: OnAnswer | None
    on_framed: OnFramed | None
    throttle: Throttle | None
    is_plain: bool

    @property
    def clock(self) -> Clock:
        """The broker's."""


class ClientConnection(Protocol):
    """The connection that a request came by: whose it is, and the order of its answers."""

    @property
    def dispatcher(self) -> RequestStages:
        """Where its frames go."""

    listener_name: str
    peer: str
    principal: str
    is_closed: bool
    is_parked: bool
    is_throttled: bool
    unsent_bytes: int
    unanswered: deque[Answerable]
    memos: dict[int, ConnectionMemo]
    fetch_fast_path: FetchFastPath | None

    @property
    def peer_host(self) -> str:
        """The other side's address without its port."""

    def put_back(self, frame: memoryview) -> None:
        """Handle a frame again once what came before it is answered."""

    def note_handled(self) -> None:
        """Count a request against what a pass allows."""

    def note_answered(self) -> None:
        """Move answers that are next in order to the output."""

    def send_at_once(self, buffers: Sequence[FramePart], size: int) -> None:
        """Send the framed answer, of so many bytes, to a request that is next in order."""

    def throttle(self, throttle_ms: int) -> None:
        """Handle no more requests for so long."""

    def fail(self, reason: str) -> None:
        """Close for the peer's fault, once the answers due are sent."""


class Request(Generic[BodyT_co]):
    """One request. Handlers read it and answer it, once.

    The type of its body is the handler's to know: what does not look at bodies takes a
    `Request[object]`.

    Attributes:
        body: the decoded message.
        connection: whom it came from; carries principal, listener and address.
        buffers: the framed answer once it is there.
        is_from_follower: whether it is another broker's Fetch.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "body",
        "buffers",
        "client_id",
        "connection",
        "correlation_id",
        "is_from_follower",
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
        stages = connection.dispatcher
        if stages.on_answer is not None:
            response = stages.on_answer(self, response)
        throttle_ms = 0
        if stages.throttle is not None:
            throttle_ms = stages.throttle(self, response)
            if throttle_ms > 0 and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms
        try:
            buffers = self.route.encode_answer(self.correlation_id, response)
        except Exception:
            # A bug of ours that must not end the others' connections.
            logger.exception("the answer to %r cannot be encoded", self)
            connection.fail("its answer cannot be encoded")
            return
        self.route.errors.count(response)
        self._send_unless_taken(buffers)
        if throttle_ms > 0:
            connection.throttle(throttle_ms)

    def answer_framed(self, buffers: list[FramePart]) -> None:
        """Send an answer that the caller has encoded and counted.

        Only while the stages are plain: hooks and throttles see responses, not bytes.
        """
        if not self.connection.is_closed:
            self._send_unless_taken(buffers)

    def answer_nothing(self) -> None:
        """Let the connection go on without an answer."""
        if not self.connection.is_closed:
            self._send_unless_taken([])

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
        now_ms = self.connection.dispatcher.clock.monotonic_ms()
        times = self.route.times
        if self.is_from_follower and self.route.follower_times is not None:
            times = self.route.follower_times
        times.record(now_ms - self.received_ms)

    def __repr__(self) -> str:
        return (
            f"<{self.route.name} v{self.api_version} from {self.client_id!r} "
            f"at {self.connection.peer}, correlation id {self.correlation_id}>"
        )


OnRequest = Callable[[Request[Any]], bool]
"""Sees a request before its handler does, and may return True to say that it took it over."""
OnAnswer = Callable[[Request[Any], Any], Any]
"""Sees a request's response, and returns the one to send instead."""
OnFramed = Callable[[Request[Any], list[FramePart]], bool]
"""Sees an encoded answer, and may return True to say that it took it over."""
Throttle = Callable[[Request[Any], Any], int]
"""For how many ms a request's connection is muted, once its response is sent; 0 for not."""
