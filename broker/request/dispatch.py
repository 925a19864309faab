"""From a frame to its handler: header, version, body, and the answer's encoding.

Routes are made once per (API, version), when the first such request comes, and found by
the first four bytes of a frame.
"""

from __future__ import annotations

import functools
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from types import GeneratorType
from typing import TYPE_CHECKING, Final, assert_never

from ...common.errors import ErrorCode, KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol.api_keys import ApiKey
from ...protocol.error_response import error_response_in_steps
from ...protocol.errors import ProtocolError
from ...protocol.frames import kept_in_own_memory
from ...protocol.headers import read_request_header
from ...runtime import waiting
from ...runtime.long_work import run_in_steps, take_step
from ...runtime.steps import run_at_once
from ...runtime.timers import Timers
from ...runtime.work_room import WorkRoom
from ...runtime.work_turns import WorkTurns
from ..handlers.registry import Registration
from .context import HandlerContext
from .fast_path.memo import REPEATS_FROM, AnyMemo
from .outcomes import Answer, AtFlush, Parked, Stepwise, Task
from .requests import (
    ClientConnection,
    LongRequest,
    OnAnswer,
    OnFramed,
    OnRequest,
    Request,
    Throttle,
)
from .route import Route

if TYPE_CHECKING:
    from ...protocol.codec.message import Message
    from ...runtime.steps import Steps
    from .quotas.quota_stage import Entry, QuotaStage

logger = logging.getLogger(__name__)

LONG_FRAME_BYTES = 32 << 10
"""A longer request may have more elements than are decoded in a step."""
DECODED_BYTES_MAX: Final = 16 << 20
"""So much memory those requests take that need more than a step to decode, until they are handled.
What is decoded within a step, as 4,000 partitions are, does not count."""
DECODED_BYTES_PER_BYTE: Final = 40
"""What a request takes while it is handled, to a byte of its frame: a partition of a Fetch has some
30 bytes there, and objects of 1.2 KB for what is requested, found and answered."""
ANSWER_STEPS_MAX: Final = 64
"""While unfinished answers have had so many steps, of some 100 KB each, only the oldest goes on."""

MEMOS: Final = {
    ApiKey.PRODUCE: "produce.ProduceMemo",
    ApiKey.FETCH: "fetch.FetchMemo",
    ApiKey.LIST_OFFSETS: "list_offsets.ListOffsetsMemo",
}
"""The APIs whose clients repeat their requests so often that a connection remembers them, and by
what. A broker that starts imports none of it."""

SERVED_WHILE_STARTING: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
    }
)
"""What a broker answers before it knows its cluster: what every connection begins with, and the
requests of the controller, from which it learns of the cluster."""

_unpack_route = struct.Struct(">I").unpack_from


class Dispatcher:
    """Routes the frames of one broker's connections through the stages of a request.

    Route, admit, decode, handle, complete, account, send: the first four are here, the others in
    `Request`. A connection's memos stand for the first four of a request that they know.

    Args:
        context: handed to every handler.
        registrations: what is served.
        timers: for connections that are throttled.
        imports_beside: see the attribute.

    Attributes:
        on_request: this and the other hooks are set by `use_hooks`, and None otherwise.
        quotas: keeps clients to their quotas; None while there are none.
        entry: takes the frames of connections: `dispatch`, or the quotas' stage before it.
        is_plain: whether there is no hook, no throttle and no quota.
        uses_memos: whether there is no hook and no throttle, and an admission may be remembered;
            else no memo is used.
        throttled: how many connections are muted for a throttle time.
        imports_beside: whether what an API's first request needs is imported in a thread, for
            which its connection waits, and not the others: a group's takes 80 modules.
    """

    def __init__(
        self,
        context: HandlerContext,
        registrations: Mapping[int, Registration],
        timers: Timers | None = None,
        *,
        imports_beside: bool = False,
    ) -> None:
        self.context = context
        self.clock = context.clock
        self.registrations = registrations
        self.on_request: OnRequest | None = None
        self.on_answer: OnAnswer | None = None
        self.on_framed: OnFramed | None = None
        self.throttle: Throttle | None = None
        self.quotas: QuotaStage | None = None
        self.entry: Entry = self.dispatch
        self._admission = context.admission
        self.is_plain = self.uses_memos = self._admission.may_be_remembered
        self.throttled = 0
        self._timers = Timers() if timers is None else timers
        self._decoded = WorkRoom[Request[object]](
            DECODED_BYTES_MAX, lambda request: not request.connection.is_closed
        )
        self._answers = WorkTurns(ANSWER_STEPS_MAX)
        self._in_steps: set[Request[object]] = set()
        """Those of `_decoded` that leave it at the end of a handler's steps."""
        self._routes: dict[int, Route] = {}
        self.imports_beside = imports_beside
        self._importing: dict[int, list[ClientConnection]] = {}
        """Those that wait for a route, by its key."""
        self._incomplete: dict[int, Route] = {}
        """Routes whose handlers could not be imported: each is for one request, the next tries."""
        self._held: list[ClientConnection] | None = None

    def hold(self) -> None:
        """Answer only `SERVED_WHILE_STARTING` until `release`; what else comes waits.

        Nothing has been dispatched before: a request waits where its route is made.
        """
        self._held = []

    def release(self) -> None:
        """Answer everything from now on, first what waits."""
        held, self._held = self._held or (), None
        for connection in held:
            connection.release()

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
        has_hooks = on_request or on_answer or on_framed or throttle
        self.uses_memos = self._admission.may_be_remembered and not has_hooks
        self._note_stages()

    def use_quotas(self, quotas: QuotaStage | None) -> None:
        """Keep clients to these quotas from now on; None: to none."""
        self.quotas = quotas
        self.entry = self.dispatch if quotas is None else quotas.metered(self.dispatch)
        self._note_stages()

    def _note_stages(self) -> None:
        self.is_plain = self.uses_memos and self.quotas is None
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
            route = self._find_route(connection, frame, may_wait=self.imports_beside)
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
        try:
            # What trails the body is ignored, as Kafka does.
            body: object = None
            session = connection.implicit_session
            if session is not None and session.key == route_key and self.uses_memos:
                body = session.decode(frame, position)
            if body is None and frame.nbytes <= LONG_FRAME_BYTES:
                body = route.decode(frame, position)[0]
            elif body is None or type(body) is GeneratorType:
                body = self._decode_long(connection, route, frame, position, body)
                if body is None:
                    return
        except ProtocolError as error:
            raise ProtocolError(f"{route.name} v{route.api_version}: {error}") from None
        request = Request(route, correlation_id, client_id or "", body, connection)
        connection.unanswered.append(request)
        if route.api_key in MEMOS and self.uses_memos:
            self._have_learnt(request, frame, position)
        self._admit(request)

    def read_unhandled(self, connection: ClientConnection, frame: memoryview) -> Request[object]:
        """A request that its connection waits for an answer to, but that nothing is done about.

        Raises:
            ProtocolError: it cannot be read, or not in one step.
        """
        route = self._find_route(connection, frame, may_wait=False)
        if route is None or frame.nbytes > LONG_FRAME_BYTES:
            raise ProtocolError("a request cannot be read now")
        correlation_id, client_id, position = read_request_header(frame)
        body = route.decode(frame, position)[0]
        request = Request(route, correlation_id, client_id or "", body, connection)
        connection.unanswered.append(request)
        return request

    def _have_learnt(self, request: Request[object], frame: memoryview, position: int) -> None:
        """Have the connection remember a request, once it is answered with success."""
        route, memos = request.route, request.connection.memos
        memo = memos.get(route.key)
        if memo is None or memo.epoch != self._admission.epoch:
            try:
                memo = memos[route.key] = _memo_type(route.api_key)(self.context, route)
            except (OSError, ImportError) as error:  # a later one is remembered
                logger.warning("requests like %r cannot be remembered yet: %s", request, error)
                return
        if memo.expects():
            request.memo = memo, bytes(frame[REPEATS_FROM:position])

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
        except Exception as error:
            self._refuse(request, _refusal_for(request, error))
        else:
            match outcome:
                case Answer():
                    request.answer(outcome.response)
                case Parked():  # `_park`, written out: this is the way of most fetches
                    connection.is_parked = connection.is_held or (
                        request.buffers is None and bool(connection.unanswered)
                    )
                case AtFlush():
                    pass
                case Task():
                    connection.is_parked = True
                    self.context.start_task(self._answer_when_done, request, outcome)
                case Stepwise():
                    self.begin(self._answer_in_steps(request, outcome.work), connection)
                    self._park(request)
                case _:
                    assert_never(outcome)

    def start_task(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run an async function beside the requests."""
        self.context.start_task(work)

    def begin(
        self, work: Steps[None], connection: ClientConnection, *, in_turn: bool = False
    ) -> None:
        """Do a connection's work: at once if it takes one step, else beside the other requests.

        Args:
            in_turn: the first step waits for its turn, too.
        """
        if in_turn or take_step(work) is None:
            self.context.start_task(self._go_on, work, connection)

    def answer_in_turn(self, request: Request[object], work: Steps[Message | Parked]) -> None:
        """Answer with what some work returns, whose first step, too, waits for its turn."""
        self.begin(self._answer_in_steps(request, work), request.connection, in_turn=True)

    async def _go_on(self, work: Steps[None], connection: ClientConnection) -> None:
        """The steps behind the first, each in its turn, while there is somebody to answer.

        What others may depend on is a broker's request.
        """
        await self._answers.run(
            work, lambda: not connection.is_closed, is_urgent=connection.is_broker
        )

    def _answer_in_steps(
        self, request: Request[object], work: Steps[Message | Parked]
    ) -> Steps[None]:
        if request.is_long:
            self._in_steps.add(request)
        try:
            try:
                response = yield from work
            except Exception as error:
                response = yield from _error_answer(request, _refusal_for(request, error))
            if not isinstance(response, Parked):
                answering = request.answer_in_steps(response)
                del response
                yield from answering
        finally:
            if request.is_long:
                self._in_steps.discard(request)
                self._decoded.leave(request)

    def _refuse(self, request: Request[object], refusal: KafkaError) -> None:
        """Answer a request of any length with an error."""
        work = _error_answer(request, refusal)
        if not isinstance(request, LongRequest):
            request.answer(run_at_once(work))
            return
        request.answer_after(work)
        self._park(request)

    def _park(self, request: Request[object]) -> None:
        """Have the connection's next requests wait, if this one is not answered yet."""
        connection = request.connection
        connection.is_parked = connection.is_held or (
            request.buffers is None and bool(connection.unanswered)
        )

    def _decode_long(
        self,
        connection: ClientConnection,
        route: Route,
        frame: memoryview,
        position: int,
        known: Steps[object | None] | None,
    ) -> object | None:
        """The body of a request that may be long; None: it is decoded beside the others', and
        handled then.

        Args:
            known: decodes it, or returns None, if it is known to its connection's session.
        """
        if known is not None:
            taken = take_step(known)
            if taken is not None:
                known, body = None, taken[0]
                if body is not None:
                    return body
        if known is None:
            decoded = take_step(route.decode_in_steps(frame, position))
            if decoded is not None:
                return decoded[0][0]
        correlation_id, client_id, _ = read_request_header(frame)
        request = LongRequest[object](route, correlation_id, client_id or "", None, connection)
        connection.unanswered.append(request)
        connection.is_parked = True
        self.context.start_task(
            self._decode_and_handle, request, kept_in_own_memory(frame), position, known
        )
        return None

    async def _decode_and_handle(
        self,
        request: LongRequest[object],
        frame: memoryview,
        position: int,
        known: Steps[object | None] | None,
    ) -> None:
        if not await self._decoded.enter(request, DECODED_BYTES_PER_BYTE * frame.nbytes):
            return
        try:
            await self._decode(request, frame, position, known)
            if request.body is not None:
                # The last step of decoding and the first of handling are two.
                await waiting.checkpoint()
                if not request.connection.is_closed:
                    self._admit(request)
        finally:
            if request not in self._in_steps:
                self._decoded.leave(request)

    async def _decode(
        self,
        request: LongRequest[object],
        frame: memoryview,
        position: int,
        known: Steps[object | None] | None,
    ) -> None:
        """Decode a request's body, unless its connection is closed, or is closed for it."""
        route, connection = request.route, request.connection
        try:
            if known is not None:
                request.body = await run_in_steps(known)
            if request.body is None and not connection.is_closed:
                work = route.decode_in_steps(frame, position)
                request.body = (await run_in_steps(work))[0]
        except ProtocolError as error:
            connection.fail(f"{route.name} v{route.api_version}: {error}")
        except Exception:
            connection.fail(f"{route.name} v{route.api_version} could not be decoded")
            raise

    async def _answer_when_done(self, request: Request[object], task: Task[Message]) -> None:
        try:
            response = await task.work
        except Exception as error:
            response = await run_in_steps(_error_answer(request, _refusal_for(request, error)))
        if not isinstance(response, Parked):
            work = request.answer_in_steps(response)
            del response
            if take_step(work) is None:
                await self._go_on(work, request.connection)

    def _find_route(
        self, connection: ClientConnection, frame: memoryview, *, may_wait: bool
    ) -> Route | None:
        """The route of a frame seen for the first time; None where it was answered, or waits.

        Args:
            may_wait: whether its connection may wait for what the route imports.

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
        if self._held is not None and registration.api_key not in SERVED_WHILE_STARTING:
            connection.put_back(frame)
            connection.hold()
            self._held.append(connection)
            return None
        incomplete = self._incomplete.pop(api_key << 16 | api_version, None)
        if incomplete is not None:
            return incomplete
        if may_wait:
            self._wait_for_route(connection, frame, registration, api_version)
            return None
        route = Route(registration, api_version)
        if route.is_complete:
            self._routes[route.key] = route
        return route

    def _wait_for_route(
        self,
        connection: ClientConnection,
        frame: memoryview,
        registration: Registration,
        api_version: int,
    ) -> None:
        connection.put_back(frame)
        connection.hold()
        key = _unpack_route(frame)[0]
        if key in self._importing:
            self._importing[key].append(connection)
        else:
            self._importing[key] = [connection]
            self.context.start_task(self._make_route, registration, api_version)

    async def _make_route(self, registration: Registration, api_version: int) -> None:
        """Make a route in a thread, and have those go on that wait for it."""
        key = registration.api_key << 16 | api_version
        make = functools.partial(Route, registration, api_version)
        try:
            try:
                route = await waiting.run_in_thread(make)
            except RuntimeError:  # the system lets us have no thread
                route = make()
        except Exception:
            for connection in self._importing.pop(key):
                connection.fail(f"{registration.api_key.name} cannot be served")
            raise
        (self._routes if route.is_complete else self._incomplete)[key] = route
        for connection in self._importing.pop(key):
            if not connection.throttles:
                connection.release()

    def _answer_unknown_api_versions(
        self, connection: ClientConnection, frame: memoryview, registration: Registration
    ) -> None:
        route = Route(registration, 0)
        correlation_id = struct.unpack_from(">i", frame, 4)[0]
        request = Request(route, correlation_id, "", None, connection)
        connection.unanswered.append(request)
        self._handle(request)


def _refusal_for(request: Request[object], error: Exception) -> KafkaError:
    """What a request is answered whose handler raised; what no handler should raise is logged."""
    if isinstance(error, KafkaError | MetadataStoreError):
        return kafka_error_of(error)
    logger.error("the handler of %r failed", request, exc_info=error)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _error_answer(request: Request[object], refusal: KafkaError) -> Steps[Message]:
    return error_response_in_steps(
        request.api_key, request.api_version, request.body, refusal.code, refusal.message
    )


@functools.cache
def _memo_type(api_key: ApiKey) -> type[AnyMemo]:
    module, _, name = MEMOS[api_key].partition(".")
    found: type[AnyMemo] = getattr(import_module(f".fast_path.{module}", __package__), name)
    return found
