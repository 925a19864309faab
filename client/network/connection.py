"""One connection to a broker: a thin trio shell around a `RequestPipeline`.

Two tasks drive it, one that sends and one that receives; whoever makes a request waits for an
event. So a caller may be cancelled at any point: a request that was sent stays in flight, its
answer is thrown away, and the connection stays usable.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final

import trio

from ...common.errors import ErrorCode
from ...common.named_tuple import NamedTuple
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...runtime.clock import Clock
from ...runtime.long_work import run_in_steps
from ..error_kinds import error_name
from ..errors import (
    ClientError,
    DisconnectedError,
    PeerProtocolError,
    RequestTimeoutError,
    UnsupportedByBrokerError,
)
from ..settings import ClientSettings, check_settings
from .api_version_ranges import ApiVersionRanges
from .opening import Connect, open_stream, tls_refusal
from .pipeline import InFlight, RequestPipeline
from .trio_clock import TrioClock, trio_deadline

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

logger = logging.getLogger(__name__)

RECEIVE_BYTES = 64 * 1024
JOIN_BYTES_MAX = 16 * 1024
"""Smaller buffers are sent together; larger ones as they are, without a copy."""

SOFTWARE_NAME = "odradek"
SOFTWARE_VERSION = "0.1.0"
"""Name and version sent to brokers for their statistics (KIP-511)."""

LOGIN_APIS: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""While one of them is unanswered, a broker takes no other request."""

REAUTHENTICATE_AT: Final = 0.85
"""The part of a session's lifetime after which the client logs in again: the earliest that Kafka's
clients do it at (SaslClientAuthenticator)."""

Authenticate = Callable[["Connection"], Awaitable[None]]
"""Makes a connection that is not used yet known to the broker, or raises AuthenticationError."""


class Outgoing(NamedTuple):
    """Buffers to send, and the request that is done with that, if it is."""

    buffers: list[Any]
    done_when_sent: InFlight | None


class Connection:
    """A stream to a broker; `run` must run while it is used.

    Args:
        stream: any trio stream; closed at the end.
        peer: the broker's address, for messages.
        settings: timeouts and limits.
        clock: the time; it must pass as trio's does. Trio's own if left out.
        host: of the broker, which Kerberos tickets are for.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        peer: str,
        settings: ClientSettings | None = None,
        clock: Clock | None = None,
        host: str = "",
    ) -> None:
        self.peer = peer
        self.host = host
        self.settings = settings = settings or ClientSettings()
        self.versions = ApiVersionRanges({})
        self.finalized_features: dict[str, int] = {}
        """The levels of the cluster's features, as the broker answered them (KIP-584)."""
        self.failure: ClientError | None = None
        """Why it is closed, once it is."""
        self.session_lifetime_ms = 0
        """For how long the last login holds; 0: as long as the connection (KIP-368)."""
        self.on_reauthenticated: Callable[[], None] = lambda: None
        """Called when it takes requests again after another login."""
        self._stream = stream
        self._clock = clock or TrioClock()
        self._pipeline = RequestPipeline(settings.client_id, settings.response_max_bytes)
        in_flight_max = settings.max_in_flight_requests_per_connection
        self._slots = trio.Semaphore(in_flight_max, max_value=in_flight_max)
        self._login_slots = trio.Semaphore(1, max_value=1)
        self._nursery: trio.Nursery | None = None
        self._outgoing: list[Outgoing] = []
        self._sending: list[Outgoing] = []
        self._has_outgoing = trio.Event()
        self._closed = trio.Event()
        self._scope = trio.CancelScope()
        self._receive_scope = trio.CancelScope()
        self._idle_since_ms = self._clock.monotonic_ms()
        self._has_received = False

    @property
    def in_flight_count(self) -> int:
        """How many requests are unanswered."""
        return len(self._pipeline)

    async def run(self) -> None:
        """Send and receive until either side closes the connection; closes the stream.

        Whatever fails ends the connection, and its caller hears of it by its requests: no fault
        of a login, or in who is called back, ends all else that its nursery runs.
        """
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    nursery.start_soon(self._send_all)
                    nursery.start_soon(self._receive_all)
        except* Exception as failures:
            logger.error("the connection to %s failed", self.peer, exc_info=failures)
            kind = type(failures.exceptions[0]).__name__
            self.close(DisconnectedError(f"the connection to {self.peer} failed by {kind}"))
        finally:
            self.close()
            await trio.aclose_forcefully(self._stream)

    def close(self, failure: ClientError | None = None) -> None:
        """End the connection; what is in flight fails.

        Args:
            failure: why; what waiting callers raise.
        """
        if self.failure is not None:
            return
        self.failure = failure or DisconnectedError(f"the connection to {self.peer} was closed")
        self._pipeline.fail_all(self.failure)
        for _, unsent in [*self._sending, *self._outgoing]:
            if unsent is not None:
                unsent.failure = self.failure
                unsent.on_done()
        self._sending, self._outgoing = [], []
        self._scope.cancel()
        self._closed.set()

    async def wait_closed(self) -> ClientError:
        """Wait until it is closed; returns why."""
        await self._closed.wait()
        assert self.failure is not None
        return self.failure

    async def request(
        self,
        request: Message,
        *,
        version: int | None = None,
        version_max: int | None = None,
        timeout_ms: int | None = None,
        expect_answer: bool = True,
        in_steps: bool = False,
    ) -> Any:
        """Send a request and wait for its answer.

        Waits, too, while as many requests are in flight as may be.

        Args:
            request: a request of `protocol.messages`.
            version: to send; the newest that both sides have if left out.
            version_max: no newer one.
            timeout_ms: `request.timeout.ms` for this one.
            expect_answer: False for a Produce with acks=0, which has none: returns None when
                it has been sent.
            in_steps: encode the request and decode its answer in steps: they may have thousands
                of elements, and others share the loop.

        Raises:
            DisconnectedError: the connection ended before the answer; RequestTimeoutError and
                PeerProtocolError are kinds of it.
            EncodeError: the version cannot carry the request.
            UnsupportedByBrokerError: no version that the broker serves will do.
        """
        api_key = type(request).api_key
        assert api_key is not None, f"{type(request).__name__} is no request"
        self._require_open()
        used = self.versions.usable(api_key, version=version, version_max=version_max)
        if timeout_ms is None:
            timeout_ms = self.settings.request_timeout_ms
        if in_steps:
            return await self._exchange_in_steps(request, used, timeout_ms)
        return await self._exchange(request, used, timeout_ms, expect_answer)

    @property
    def has_free_slot(self) -> bool:
        """Whether `request_nowait` may be called: it is open, and not too much is in flight."""
        return self.failure is None and self._slots.value > 0

    def request_nowait(
        self,
        request: Message,
        version: int,
        on_done: Callable[[InFlight], None],
        *,
        expect_answer: bool = True,
    ) -> None:
        """Have a request sent without waiting, in the order of the calls.

        Args:
            request: a request of `protocol.messages`.
            version: to send.
            on_done: is called with its answer or failure, before anything else happens to this
                connection.
            expect_answer: False for a Produce with acks=0: it is done when it has been sent.

        Raises:
            trio.WouldBlock: as many requests are in flight as may be.
            DisconnectedError: the connection has ended.
            EncodeError: the version cannot carry the request.
        """
        self._slots.acquire_nowait()
        in_flight = self._start(
            request,
            version,
            self.settings.request_timeout_ms,
            expect_answer,
            lambda: on_done(in_flight),
            self._slots,
        )

    async def negotiate(self) -> None:
        """Ask the broker what it serves; to be done once, before anything else.

        Raises:
            DisconnectedError: the connection ended before the answer.
            UnsupportedByBrokerError: the broker refuses every version of ApiVersions.
        """
        request = messages.ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        version = messages.ApiVersionsRequest.versions[-1]
        timeout_ms = self.settings.request_timeout_ms
        response = await self._exchange(request, version, timeout_ms, True)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
            served = ApiVersionRanges.of(response).served(ApiKey.API_VERSIONS)
            version = max(min(served.stop, version) - 1, 0)
            response = await self._exchange(request, version, timeout_ms, True)
        if response.error_code:
            raise UnsupportedByBrokerError(
                f"{self.peer} answered ApiVersions v{version} with "
                f"{error_name(response.error_code)}"
            )
        self.versions = ApiVersionRanges.of(response)
        self.finalized_features = {
            feature.name: feature.max_version_level for feature in response.finalized_features
        }

    async def log_in(self, authenticate: Authenticate) -> None:
        """Log in, and again before the session ends, as long as the connection lasts (KIP-368).

        Raises:
            AuthenticationError: the broker refused the credentials.
            DisconnectedError: the connection ended meanwhile.
        """
        await authenticate(self)
        if self.session_lifetime_ms and self._nursery is not None:
            self._nursery.start_soon(self._log_in_again, authenticate)

    # --- Inside ------------------------------------------------------------------------------

    async def _log_in_again(self, authenticate: Authenticate) -> None:
        """Log in whenever a session is about to end; between requests, which wait so long."""
        slots = self.settings.max_in_flight_requests_per_connection
        while self.session_lifetime_ms:
            await trio.sleep(REAUTHENTICATE_AT * self.session_lifetime_ms / 1000)
            held = 0
            try:
                while held < slots:
                    await self._slots.acquire()
                    held += 1
                idle_since_ms = self._idle_since_ms
                await authenticate(self)
            except ClientError as error:
                self.close(error)
                return
            finally:
                for _ in range(held):
                    self._slots.release()
            # A login is no use of the connection: it idles as long as before.
            self._idle_since_ms = idle_since_ms
            self._receive_scope.deadline = self._next_deadline()
            self.on_reauthenticated()

    async def _exchange_in_steps(self, request: Message, version: int, timeout_ms: int) -> Any:
        api_key = type(request).api_key
        assert api_key is not None
        response = messages.response_message(api_key)
        encoded = await run_in_steps(type(request).stepwise_encoder(version)(request))
        frame = await self._exchange(request, version, timeout_ms, True, encoded)
        try:
            answer, _ = await run_in_steps(response.stepwise_decoder(version)(frame, 0))
        except ProtocolError as error:
            failure = PeerProtocolError(f"this is no {response.name} v{version}: {error}")
            self.close(failure)
            raise failure from error
        return answer

    async def _exchange(
        self,
        request: Message,
        version: int,
        timeout_ms: int,
        expect_answer: bool,
        encoded: list[Any] | None = None,
    ) -> Any:
        slots = self._login_slots if type(request).api_key in LOGIN_APIS else self._slots
        await slots.acquire()
        done = trio.Event()
        in_flight = self._start(
            request, version, timeout_ms, expect_answer, done.set, slots, encoded
        )
        await done.wait()
        failure = in_flight.failure
        if failure is not None:
            # One of its own for each of those who wait: tracebacks gather in exceptions.
            raise type(failure)(*failure.args) from failure
        return in_flight.answer

    def _start(
        self,
        request: Message,
        version: int,
        timeout_ms: int,
        expect_answer: bool,
        on_done: Callable[[], None],
        slots: trio.Semaphore,
        encoded: list[Any] | None = None,
    ) -> InFlight:
        """Have a request sent that holds a slot already, and gives it back in the end."""

        def release() -> None:
            slots.release()
            on_done()

        try:
            self._require_open()
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            in_flight, buffers = self._pipeline.start(
                request,
                version,
                deadline_ms,
                release,
                expect_answer=expect_answer,
                encoded=encoded,
            )
        except BaseException:
            slots.release()
            raise
        self._outgoing.append(Outgoing(buffers, None if expect_answer else in_flight))
        self._has_outgoing.set()
        deadline = trio_deadline(self._clock, deadline_ms)
        self._receive_scope.deadline = min(self._receive_scope.deadline, deadline)
        return in_flight

    def _require_open(self) -> None:
        if self.failure is not None:
            raise DisconnectedError(
                f"the connection to {self.peer} is closed: {self.failure}"
            ) from self.failure

    async def _send_all(self) -> None:
        try:
            while True:
                await self._has_outgoing.wait()
                self._has_outgoing = trio.Event()
                self._sending, self._outgoing = self._outgoing, []
                await self._send([buffer for item in self._sending for buffer in item.buffers])
                sent, self._sending = self._sending, []
                for _, done in sent:
                    if done is not None:
                        done.on_done()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.close(self._why_broken(error))

    def _why_broken(self, error: Exception) -> ClientError:
        refusal = None if self._has_received else tls_refusal(self.peer, error)
        return refusal or DisconnectedError(f"the connection to {self.peer} broke: {error}")

    async def _send(self, buffers: list[Any]) -> None:
        small: list[Any] = []
        for buffer in buffers:
            if len(buffer) <= JOIN_BYTES_MAX:
                small.append(buffer)
                continue
            if small:
                await self._stream.send_all(b"".join(small))
                small = []
            await self._stream.send_all(buffer)
        if small:
            await self._stream.send_all(b"".join(small))

    async def _receive_all(self) -> None:
        try:
            while self.failure is None:
                with trio.CancelScope(deadline=self._next_deadline()) as self._receive_scope:
                    size = await self._receive_some()
                if self._receive_scope.cancelled_caught:
                    self._close_if_late()
                elif not size:
                    self.close(DisconnectedError(self._ended_by_peer()))
                else:
                    self._has_received = True
                    self._idle_since_ms = self._clock.monotonic_ms()
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
            self.close(self._why_broken(error))
        except ClientError as error:
            self.close(type(error)(f"{self.peer}: {error}"))

    async def _receive_some(self) -> int:
        """Take what has come, and complete what it answers; 0: the peer sends no more.

        Raises:
            PeerProtocolError: it does not answer the request.
            OSError: the socket broke. So do trio's errors say it of other streams.
        """
        region = self._pipeline.region()
        if region is None or not isinstance(self._stream, trio.SocketStream):
            received = await self._stream.receive_some(RECEIVE_BYTES)
            if received:
                self._pipeline.receive(received)
            return len(received)
        size = await self._stream.socket.recv_into(region)
        if size:
            self._pipeline.received_in_region(size)
        return size

    def _ended_by_peer(self) -> str:
        where = " in the middle of an answer" if self._pipeline.is_within_answer else ""
        return f"{self.peer} closed the connection{where}"

    def _next_deadline(self) -> float:
        """When the first request in flight times out, or this connection idled too long."""
        at_ms = self._pipeline.next_deadline_ms()
        idle_ms = self.settings.connections_max_idle_ms
        if at_ms is None and idle_ms >= 0:
            at_ms = self._idle_since_ms + idle_ms
        return math.inf if at_ms is None else trio_deadline(self._clock, at_ms)

    def _close_if_late(self) -> None:
        """The receiving waited up to a deadline, which may have moved meanwhile."""
        now_ms = self._clock.monotonic_ms()
        at_ms = self._pipeline.next_deadline_ms()
        if at_ms is not None:
            if at_ms <= now_ms:
                self.close(RequestTimeoutError(f"{self.peer} did not answer a request in time"))
            return
        idle_ms = self.settings.connections_max_idle_ms
        if idle_ms >= 0 and now_ms - self._idle_since_ms >= idle_ms:
            self.close(DisconnectedError(f"the connection to {self.peer} idled for {idle_ms} ms"))


@asynccontextmanager
async def open_connection(
    host: str,
    port: int,
    settings: ClientSettings | None = None,
    *,
    connect: Connect | None = None,
    ssl_context: SSLContext | None = None,
    authenticate: Authenticate | None = None,
    fixed_versions: dict[int, int] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Connection]:
    """A connection for the length of an `async with`, ready for requests.

    Args:
        host: of the broker.
        port: of the broker.
        settings: timeouts and limits.
        connect: opens streams; `trio.open_tcp_stream` if left out.
        ssl_context: speak TLS, with this.
        authenticate: is run before anything but ApiVersions is sent.
        fixed_versions: by API key, instead of asking the broker what it serves.
        clock: the time; trio's own if left out.

    Raises:
        ConnectError: it could not be opened.
        AuthenticationError: broker or certificate was refused.
        DisconnectedError: it ended before it was ready.
    """
    settings = check_settings(settings or ClientSettings())
    stream = await open_stream(
        host,
        port,
        connect=connect,
        ssl_context=ssl_context,
        timeout_ms=settings.socket_connection_setup_timeout_ms,
    )
    connection = Connection(stream, f"{host}:{port}", settings, clock, host)
    error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        try:
            await prepare(connection, fixed_versions, authenticate)
            yield connection
        except BaseException as raised:
            # Raised again outside the nursery, which would put it into a group.
            error = raised
        finally:
            connection.close()
    if error is not None:
        raise error


async def prepare(
    connection: Connection,
    fixed_versions: dict[int, int] | None,
    authenticate: Authenticate | None,
) -> None:
    """What a connection needs before its first request: versions, then authentication.

    Raises:
        AuthenticationError: the broker refused the credentials.
        DisconnectedError: it ended meanwhile.
    """
    if fixed_versions is None:
        await connection.negotiate()
    else:
        connection.versions = ApiVersionRanges.fixed(fixed_versions)
    if authenticate is not None:
        await connection.log_in(authenticate)
