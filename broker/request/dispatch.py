"""From a frame to its handler: header, version, body, and the answer's encoding.

Routes are made once per (API, version), when the first such request comes, and found by
the first four bytes of a frame.
"""

from __future__ import annotations

import functools
import logging
import struct
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, assert_never

from ...common.errors import ErrorCode, KafkaError
from ...protocol.api_keys import ApiKey
from ...protocol.error_response import error_response
from ...protocol.errors import ProtocolError
from ...protocol.headers import read_request_header
from ...protocol.messages import request_message
from ...runtime.long_work import run_in_steps
from ...runtime.timers import Timers
from ..handlers.registry import Registration
from .context import HandlerContext
from .fast_path.idle_fetch import decode_fetch
from .fast_path.memo import AnyMemo
from .outcomes import Answer, AtFlush, Parked, Task
from .requests import (
    ClientConnection,
    OnAnswer,
    OnFramed,
    OnRequest,
    Request,
    Throttle,
)
from .route import Route

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

logger = logging.getLogger(__name__)

LONG_FRAME_BYTES = 32 << 10
"""A request that may list the partitions of a whole cluster, and is longer, is decoded in steps:
its some thousand microseconds are not spent in one go."""

MEMOS: Final = {
    ApiKey.PRODUCE: "produce.ProduceMemo",
    ApiKey.FETCH: "fetch.FetchMemo",
    ApiKey.LIST_OFFSETS: "list_offsets.ListOffsetsMemo",
}
"""The APIs whose clients repeat their requests so often that a connection remembers them, and by
what. A broker that starts imports none of it."""

_unpack_route = struct.Struct(">I").unpack_from


class Dispatcher:
    """Routes the frames of one broker's connections through the stages of a request.

    Route, admit, decode, handle, complete, account, send: the first four are here, the others in
    `Request`. A connection's memos stand for the first four of a request that they know.

    Args:
        context: handed to every handler.
        registrations: what is served.
        timers: for connections that are throttled.

    Attributes:
        on_request: this and the other hooks are set by `use_hooks`, and None otherwise.
        is_plain: whether there is no hook and no throttle; while there is, no memo is used.
    """

    def __init__(
        self,
        context: HandlerContext,
        registrations: Mapping[int, Registration],
        timers: Timers | None = None,
    ) -> None:
        self.context = context
        self.clock = context.clock
        self.registrations = registrations
        self.on_request: OnRequest | None = None
        self.on_answer: OnAnswer | None = None
        self.on_framed: OnFramed | None = None
        self.throttle: Throttle | None = None
        self.is_plain = True
        self._admission = context.admission
        self._timers = Timers() if timers is None else timers
        self._routes: dict[int, Route] = {}

    def use_hooks(
        self,
        *,
        on_request: OnRequest | None = None,
        on_answer: OnAnswer | None = None,
        on_framed: OnFramed | None = None,
        throttle: Throttle | None = None,
    ) -> None:
        """Have these look at every request from now on, and no others; for tests and faults."""
        self.on_request = on_request
        self.on_answer = on_answer
        self.on_framed = on_framed
        self.throttle = throttle
        self.is_plain = not (on_request or on_answer or on_framed or throttle)
        self._admission.invalidate()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back in a pass that begins so much later."""
        self._timers.schedule(self.clock.monotonic_ms() + delay_ms, callback)

    @property
    def routes(self) -> list[Route]:
        """Those that requests have come for so far."""
        return list(self._routes.values())

    def dispatch(self, connection: ClientConnection, frame: memoryview) -> None:
        """Handle one request frame.

        Raises:
            ProtocolError: the frame is no request that this broker can read; the connection
                is to be closed.
        """
        try:
            route_key = _unpack_route(frame)[0]
        except struct.error:
            raise ProtocolError(f"a request of {len(frame)} bytes has no whole header") from None
        memo = connection.memos.get(route_key)
        if (
            memo is not None
            and memo.epoch == self._admission.epoch
            and memo.take(connection, frame)
        ):
            return
        route = self._routes.get(route_key)
        if route is None:
            route = self._find_route(connection, frame)
            if route is None:
                return
        if connection.unanswered and route.api_key != ApiKey.PRODUCE:
            # Kafka handles a connection's requests one by one: this one sees what those
            # before it have staged, and comes after those that wait for replicas.
            self.context.replica_manager.flush()
            if connection.unanswered:
                connection.put_back(frame)
                return
        correlation_id, client_id, position = read_request_header(frame)
        if route.may_be_long and len(frame) > LONG_FRAME_BYTES:
            self._take_long(connection, route, frame)
            return
        try:
            # What trails the body is ignored, as Kafka does.
            if route.api_key is ApiKey.FETCH:
                body = decode_fetch(self.context, connection, route, frame, position)
            else:
                body = route.decode(frame, position)[0]
        except ProtocolError as error:
            raise ProtocolError(f"{route.name} v{route.api_version}: {error}") from None
        connection.note_handled()
        request = Request(route, correlation_id, client_id or "", body, connection)
        connection.unanswered.append(request)
        self._admit(request)
        if route.api_key in MEMOS and self.is_plain:
            self._learn(request, frame, position, body)

    def _learn(
        self, request: Request[object], frame: memoryview, position: int, body: object
    ) -> None:
        """Have the connection remember a request that was handled."""
        route, memos = request.route, request.connection.memos
        memo = memos.get(route.key)
        if memo is None or memo.epoch != self._admission.epoch:
            memo = memos[route.key] = _memo_type(route.api_key)(self.context, route)
        memo.learn(request, frame, position, body)

    def _admit(self, request: Request[object]) -> None:
        """Handle a request, unless a hook takes it over."""
        if self.on_request is not None and self.on_request(request):
            request.connection.is_parked = request.buffers is None
        else:
            self._handle(request)

    def resume(self, request: Request[object]) -> None:
        """Handle a request that `on_request` took over; its body keeps no frame's memory."""
        if not request.connection.is_closed:
            self._handle(request)

    def _handle(self, request: Request[object]) -> None:
        connection = request.connection
        try:
            outcome = request.route.handler(self.context, request)
        except KafkaError as refusal:
            request.answer(self._error_answer(request, refusal.code, refusal.message))
        except Exception:
            logger.exception("the handler of %r failed", request)
            request.answer(self._error_answer(request, ErrorCode.UNKNOWN_SERVER_ERROR, None))
        else:
            match outcome:
                case Answer():
                    request.answer(outcome.response)
                case Parked():
                    connection.is_parked = connection.is_throttled or (
                        request.buffers is None and bool(connection.unanswered)
                    )
                case AtFlush():
                    pass
                case Task():
                    connection.is_parked = True
                    self.context.start_task(self._answer_when_done, request, outcome)
                case _:
                    assert_never(outcome)

    def _take_long(self, connection: ClientConnection, route: Route, frame: memoryview) -> None:
        """Decode a long request beside the others', and handle it then."""
        connection.note_handled()
        correlation_id, client_id, position = read_request_header(frame)
        request = Request(route, correlation_id, client_id or "", None, connection)
        connection.unanswered.append(request)
        connection.is_parked = True
        self.context.start_task(self._decode_and_handle, request, bytes(frame), position)

    async def _decode_and_handle(
        self, request: Request[object], frame: bytes, position: int
    ) -> None:
        route, connection = request.route, request.connection
        decode = request_message(route.api_key).stepwise_decoder(route.api_version)
        try:
            request.body = (await run_in_steps(decode(frame, position)))[0]
        except ProtocolError as error:
            connection.fail(f"{route.name} v{route.api_version}: {error}")
            return
        if connection.is_closed:
            return
        self._admit(request)

    async def _answer_when_done(self, request: Request[object], task: Task[Message]) -> None:
        try:
            response = await task.work
        except KafkaError as refusal:
            response = self._error_answer(request, refusal.code, refusal.message)
        except Exception:
            logger.exception("the handler of %r failed", request)
            response = self._error_answer(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
        if not isinstance(response, Parked):
            request.answer(response)

    def _error_answer(
        self, request: Request[object], code: ErrorCode, message: str | None
    ) -> Message:
        answer: Message = error_response(
            request.api_key, request.api_version, request.body, code, message
        )
        return answer

    def _find_route(self, connection: ClientConnection, frame: memoryview) -> Route | None:
        """The route of a frame seen for the first time; None where it was answered already.

        Raises:
            ProtocolError: the API or its version is not served. Kafka closes the connection
                then, but for ApiVersions, whose unknown versions are answered in version 0.
        """
        if len(frame) < 8:
            raise ProtocolError(f"a request of {len(frame)} bytes has no whole header")
        api_key, api_version = struct.unpack_from(">hh", frame)
        registration = self.registrations.get(api_key)
        if registration is None:
            raise ProtocolError(f"API key {api_key} is not served here")
        if api_version not in registration.versions:
            if api_key == ApiKey.API_VERSIONS:
                self._answer_unknown_api_versions(connection, frame, registration)
                return None
            raise ProtocolError(
                f"{registration.api_key.name} v{api_version} is not served here, only "
                f"{registration.versions.start} to {registration.versions.stop - 1}"
            )
        route = self._routes[_unpack_route(frame)[0]] = Route(registration, api_version)
        return route

    def _answer_unknown_api_versions(
        self, connection: ClientConnection, frame: memoryview, registration: Registration
    ) -> None:
        route = Route(registration, 0)
        correlation_id = struct.unpack_from(">i", frame, 4)[0]
        request = Request(route, correlation_id, "", None, connection)
        connection.unanswered.append(request)
        self._handle(request)


@functools.cache
def _memo_type(api_key: ApiKey) -> type[AnyMemo]:
    module, _, name = MEMOS[api_key].partition(".")
    found: type[AnyMemo] = getattr(import_module(f".fast_path.{module}", __package__), name)
    return found
