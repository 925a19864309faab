"""HTTP on the loopback interface: requests are looked up in the table and carried out.

Whoever connects may be hostile. A page in a browser must not steer a broker: what names another
host than this machine's loopback (DNS rebinding), or comes from a page of another origin, is
refused before it is looked at. Heads, bodies and connections are bounded, in bytes, time and
number.
"""

from __future__ import annotations

import inspect
import json
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import h11
import trio

from ...broker.network.accepting import accept_all
from ..control.client import ControlError, ControlTimeout
from ..process.broker_process import BrokerStartError
from ..waiting import NotReached
from .json_form import json_of
from .operation import Operation, RequestRefused
from .operations import TABLE
from .served_cluster import ServedCluster

logger = logging.getLogger(__name__)

CONNECTIONS_MAX = 128
BODY_BYTES_MAX = 1 << 20
HEAD_BYTES_MAX = 16 * 1024
RECEIVE_SECONDS_MAX = 30.0
"""How long a request may take to come, and a client to read its answer."""
IDLE_SECONDS_MAX = 300.0
"""How long a connection is kept for the next request."""
RECEIVE_BYTES = 64 * 1024
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

REFUSED: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (NotReached, HTTPStatus.GATEWAY_TIMEOUT),
    (ControlTimeout, HTTPStatus.GATEWAY_TIMEOUT),
    (ControlError, HTTPStatus.CONFLICT),
    (BrokerStartError, HTTPStatus.CONFLICT),
    (ValueError, HTTPStatus.BAD_REQUEST),
    (TypeError, HTTPStatus.BAD_REQUEST),
)
"""What operations raise, and the status that says so; the first that fits."""

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class ControlEndpoint:
    """Serves one cluster's operations.

    Args:
        served: the cluster.
        port: 0 takes a free one.

    Attributes:
        port: the port on 127.0.0.1; connections are accepted by `serve`.

    Raises:
        OSError: the port cannot be had.
    """

    def __init__(self, served: ServedCluster, port: int = 0) -> None:
        self._served = served
        self._socket = socket.create_server(("127.0.0.1", port), backlog=CONNECTIONS_MAX)
        self.port = int(self._socket.getsockname()[1])
        self._connections = 0
        self._processes = trio.Lock()

    @property
    def url(self) -> str:
        """What requests begin with."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self) -> None:
        """Answer requests until cancelled."""
        await accept_all(self._socket, self._serve_connection)

    async def _serve_connection(self, sock: trio.socket.SocketType, _: str) -> None:
        stream = trio.SocketStream(sock)
        self._connections += 1
        try:
            async with stream:
                exchange = _Exchange(stream)
                if self._connections > CONNECTIONS_MAX:
                    sentence = f"there are {CONNECTIONS_MAX} connections already: close some"
                    await exchange.answer(503, {"error": sentence})
                    return
                while await self._serve_request(exchange):
                    pass
        except _GONE:
            pass  # the client has left
        finally:
            self._connections -= 1

    async def _serve_request(self, exchange: _Exchange) -> bool:
        """Answer the next request; returns whether there may be another."""
        try:
            with trio.fail_after(IDLE_SECONDS_MAX):
                received = await exchange.receive()
            if received is None:
                return False
            status, answer = await self._answer_unless_left(exchange, *received)
        except trio.TooSlowError:
            return False
        except RequestRefused as refusal:
            status, answer = refusal.status, {"error": str(refusal)}
        except h11.RemoteProtocolError as error:
            status, answer = error.error_status_hint, {"error": f"this is no HTTP request: {error}"}
        return await exchange.answer(status, answer)

    async def _answer_unless_left(
        self, exchange: _Exchange, request: h11.Request, body: bytes
    ) -> tuple[int, Any]:
        """Carry a request out; what waits is cancelled if the client leaves meanwhile."""
        outcome: tuple[int, Any] = (500, {"error": "the client has left"})

        async def watch() -> None:
            if await exchange.has_left():
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            outcome = await self._answer(request, body)
            nursery.cancel_scope.cancel()
        return outcome

    async def _answer(self, request: h11.Request, body: bytes) -> tuple[int, Any]:
        method = request.method.decode("ascii", "replace")
        try:
            require_loopback(request)
            target = urlsplit(request.target.decode("ascii", "replace"))
            operation, in_path = TABLE.find(method, target.path)
            arguments = operation.read_arguments(in_path, target.query, body)
            return 200, await self._carry_out(operation, arguments)
        except RequestRefused as refusal:
            return refusal.status, {"error": str(refusal)}
        except Exception as error:
            for kind, status in REFUSED:
                if isinstance(error, kind):
                    return status, {"error": str(error)}
            logger.exception("%s %s failed", method, request.target)
            return 500, {"error": f"{type(error).__name__} in odradek: {error}"}

    async def _carry_out(self, operation: Operation, arguments: dict[str, Any]) -> Any:
        """What the operation answers. Its function may block, but for one that waits."""
        work = partial(operation.function, self._served, **arguments)
        if inspect.iscoroutinefunction(operation.function):
            result = await work()
        elif operation.changes_processes:
            async with self._processes:
                result = await trio.to_thread.run_sync(work)
        else:
            result = await trio.to_thread.run_sync(work)
        return {} if result is None else await trio.to_thread.run_sync(json_of, result)


class _Exchange:
    """One connection: requests are received whole, and answered one after another."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._wants_head_only = False

    async def receive(self) -> tuple[h11.Request, bytes] | None:
        """The next request and its body; None: the client has closed the connection.

        Raises:
            RequestRefused: its body is too long.
            h11.RemoteProtocolError: it is no HTTP.
            trio.TooSlowError: it stopped on its way.
        """
        request = await self._next_event()
        if not isinstance(request, h11.Request):
            return None
        self._wants_head_only = request.method == b"HEAD"
        body = bytearray()
        with trio.fail_after(RECEIVE_SECONDS_MAX):
            while True:
                event = await self._next_event()
                if isinstance(event, h11.EndOfMessage):
                    return request, bytes(body)
                if not isinstance(event, h11.Data):
                    return None
                body += event.data
                if len(body) > BODY_BYTES_MAX:
                    raise RequestRefused(413, f"a body is at most {BODY_BYTES_MAX} bytes")

    async def _next_event(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                going_on = h11.InformationalResponse(status_code=100, headers=[])
                await self._send([going_on])
            self._http.receive_data(await self._stream.receive_some(RECEIVE_BYTES))

    async def has_left(self) -> bool:
        """Whether the client closes the connection, or sends its next request; waits for either."""
        with suppress(*_GONE):
            data = await self._stream.receive_some(RECEIVE_BYTES)
            self._http.receive_data(data)
            return not data
        return True

    async def answer(self, status: int, value: Any) -> bool:
        """Send an answer; returns whether the connection can have another request."""
        try:
            body = json.dumps(value).encode()
        except ValueError as error:
            status, body = 500, json.dumps({"error": f"this has no JSON: {error}"}).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return False
        if self._http.their_state is not h11.DONE:
            headers.append(("Connection", "close"))  # what is left of the request is not read
        phrase = HTTPStatus(status).phrase.encode()
        head = h11.Response(status_code=status, headers=headers, reason=phrase)
        with trio.move_on_after(RECEIVE_SECONDS_MAX) as patience:
            data = b"" if self._wants_head_only else body
            await self._send([head, h11.Data(data=data), h11.EndOfMessage()])
        if patience.cancelled_caught:
            return False
        if {self._http.our_state, self._http.their_state} == {h11.DONE}:
            self._http.start_next_cycle()
            return True
        with trio.move_on_after(1), suppress(*_GONE):
            # Data that nobody reads would reset the connection before the answer is read.
            await self._stream.send_eof()
            for _ in range(BODY_BYTES_MAX // RECEIVE_BYTES):
                if not await self._stream.receive_some(RECEIVE_BYTES):
                    break
        return False

    async def _send(self, events: list[h11.Event]) -> None:
        parts = [self._http.send(event) for event in events]
        await self._stream.send_all(b"".join(part for part in parts if part))


def require_loopback(request: h11.Request) -> None:
    """Refuse what a page of another site has a browser send.

    Raises:
        RequestRefused: the host that is named, or the page's origin, is not this machine's own.
    """
    hosts = list(_values(request, b"host"))
    if len(hosts) != 1 or _host_of(f"//{hosts[0]}") not in LOOPBACK:
        raise RequestRefused(
            403,
            "the Host of a request is 127.0.0.1, localhost or [::1], and nothing else is served",
        )
    for origin in _values(request, b"origin"):
        if _host_of(origin) not in LOOPBACK:
            raise RequestRefused(403, f"pages of {origin[:80]!r} may not steer this broker")


def _values(request: h11.Request, name: bytes) -> Iterator[str]:
    return (value.decode("latin-1") for key, value in request.headers if key == name)


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
