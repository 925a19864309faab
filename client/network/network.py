"""Connections to many nodes, each made when it is needed and kept.

No metadata here: whoever sends names the node's address. That is what brokers need, who know
each other's; `KafkaClient` adds the metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from random import Random
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import trio

from ...runtime.clock import Clock
from ..errors import (
    AuthenticationError,
    ClientClosedError,
    ClientError,
    DisconnectedError,
    RequestTimeoutError,
)
from ..metadata.cluster import Node
from ..settings import ClientSettings, check_settings
from .connection import Authenticate, Connection, prepare
from .node_states import NodeStates
from .nursery import OwnedNursery
from .opening import Connect, open_stream
from .throttling import client_must_wait
from .trio_clock import TrioClock

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

logger = logging.getLogger(__name__)


class NetworkListener(Protocol):
    """Who wants to know what becomes of connections."""

    def connection_ready(self, node: Node) -> None:
        """Requests may be sent to the node now."""

    def connection_failed(self, node: Node, failure: ClientError) -> None:
        """A connection could not be made."""

    def connection_lost(self, node: Node, failure: ClientError) -> None:
        """A connection that was ready ended."""

    def request_timed_out(self, node: Node, failure: ClientError) -> None:
        """A connection was closed because a request on it timed out."""


class Link:
    """The connection to one node, from the attempt to make it to its end."""

    __slots__ = ("connection", "failure", "is_closing", "node", "scope", "settled")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.connection: Connection | None = None
        """Once it is ready."""
        self.failure: ClientError | None = None
        self.settled = trio.Event()
        """Set when one of the two is known."""
        self.scope = trio.CancelScope()
        self.is_closing = False
        """Whether this side closes it, so that its end says nothing about the broker."""


class NetworkClient:
    """Sends requests to nodes; use it as `async with NetworkClient(...) as network`.

    Args:
        settings: timeouts, backoffs and limits.
        connect: opens streams; `trio.open_tcp_stream` if left out.
        ssl_context: speak TLS, with this.
        authenticate: is run on each new connection before it is used.
        fixed_versions: by API key, instead of asking each broker what it serves; other APIs
            cannot be used then.
        clock: the time; it must pass as trio's does. Trio's own if left out.
        random: the jitter of backoffs.
        listener: is called when connections open, fail and end.

    Raises:
        ValueError: a setting is out of its range.
    """

    def __init__(
        self,
        settings: ClientSettings | None = None,
        *,
        connect: Connect | None = None,
        ssl_context: SSLContext | None = None,
        authenticate: Authenticate | None = None,
        fixed_versions: Mapping[int, int] | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        listener: NetworkListener | None = None,
    ) -> None:
        self.settings = check_settings(settings or ClientSettings())
        self.clock = clock or TrioClock()
        self.states = NodeStates(self.settings, random or Random())
        self._connect = connect
        self._ssl_context = ssl_context
        self._authenticate = authenticate
        self._fixed_versions = None if fixed_versions is None else dict(fixed_versions)
        self._listener = listener
        self._links: dict[int, Link] = {}
        self._owned_nursery = OwnedNursery()
        self.nursery: trio.Nursery | None = None
        """Where connections live; None while the client is not open."""

    async def __aenter__(self) -> Self:
        self.nursery = await self._owned_nursery.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self.nursery = None
        for link in self._links.values():
            link.is_closing = True
        return await self._owned_nursery.close(kind, error, traceback)

    async def send(
        self,
        node: Node,
        request: Message,
        *,
        version: int | None = None,
        version_max: int | None = None,
        timeout_ms: int | None = None,
        expect_answer: bool = True,
    ) -> Any:
        """Send a request to a node and wait for its answer.

        A connection is made if there is none, after what is left of the reconnect backoff; if
        that fails, so does this. Waits, too, while the node throttles this client.

        Args:
            node: its id and address; a connection to the id is used whatever its address is.
            request: a request of `protocol.messages`.
            version: to send; the newest that both sides have if left out.
            version_max: no newer one.
            timeout_ms: `request.timeout.ms` for this one.
            expect_answer: False for a Produce with acks=0.

        Raises:
            ConnectError: no connection could be made; nothing was sent.
            DisconnectedError: it ended before the answer, or the request timed out.
            AuthenticationError: broker or certificate was refused.
            UnsupportedByBrokerError: no version that the broker serves will do.
            ClientClosedError: this client is not open.
        """
        connection = await self._ready_connection(node)
        response = await connection.request(
            request,
            version=version,
            version_max=version_max,
            timeout_ms=timeout_ms,
            expect_answer=expect_answer,
        )
        self._note_throttling(node.id, connection, request, response, version, version_max)
        return response

    async def usable_version(
        self, node: Node, api_key: int, *, version_max: int | None = None
    ) -> int:
        """The newest version of an API that a node and this client have in common.

        Raises:
            UnsupportedByBrokerError: there is none.
            DisconnectedError: the node cannot be reached.
            AuthenticationError: broker or certificate was refused.
        """
        connection = await self._ready_connection(node)
        return connection.versions.usable(api_key, version_max=version_max)

    async def finalized_features(self, node: Node) -> Mapping[str, int]:
        """The levels of the cluster's features, as a node answered when it was connected to.

        Raises:
            DisconnectedError: the node cannot be reached.
            AuthenticationError: broker or certificate was refused.
        """
        return (await self._ready_connection(node)).finalized_features

    def free_connection(self, node: Node) -> Connection | None:
        """The connection to a node, if it takes a request now; otherwise one is made, unless
        there is one or the backoff is not over. See `busy_ms`."""
        link = self._links.get(node.id)
        now_ms = self.clock.monotonic_ms()
        if link is None:
            if self.states.connection_delay_ms(node.id, now_ms) == 0:
                self.connect_soon(node)
            return None
        if link.connection is None or not link.connection.has_free_slot:
            return None
        return None if self.states.throttle_delay_ms(node.id, now_ms) else link.connection

    def busy_ms(self, node_id: int) -> int | None:
        """How long a node without a free connection has none for certain, because of a backoff
        or a throttle; None: that depends on what happens."""
        now_ms = self.clock.monotonic_ms()
        delay_ms = max(
            self.states.connection_delay_ms(node_id, now_ms),
            self.states.throttle_delay_ms(node_id, now_ms),
        )
        return delay_ms or None

    def note_throttling(self, node_id: int, api_key: int, version: int, throttle_ms: int) -> None:
        """An answer had a throttle time: wait before the next request, if it is for the client
        to wait (KIP-219)."""
        if throttle_ms > 0 and client_must_wait(api_key, version):
            self.states.throttle(node_id, self.clock.monotonic_ms() + throttle_ms)

    def connect_soon(self, node: Node) -> None:
        """Begin to connect to a node, unless there is a connection or one is being made.

        Raises:
            ClientClosedError: this client is not open.
        """
        if self.nursery is None:
            raise ClientClosedError("the client is not open: use it as `async with`")
        if node.id not in self._links:
            self._links[node.id] = link = Link(node)
            self.states.connecting(node.id, self.clock.monotonic_ms())
            self.nursery.start_soon(self._run_link, link)

    def disconnect(self, node_id: int) -> None:
        """Close the connection to a node, if there is one; what is in flight on it fails."""
        link = self._links.get(node_id)
        if link is not None:
            link.is_closing = True
            link.scope.cancel()
            if link.connection is not None:
                link.connection.close()
            self._end(link, DisconnectedError(f"node {node_id} was disconnected from"))

    def forget(self, node_id: int) -> None:
        """Close the connection to a node and forget its backoff: it is somewhere else now."""
        self.disconnect(node_id)
        self.states.remove(node_id)

    def in_flight_count(self, node_id: int) -> int:
        """How many requests a node has not answered."""
        link = self._links.get(node_id)
        return 0 if link is None or link.connection is None else link.connection.in_flight_count

    # --- Inside ------------------------------------------------------------------------------

    async def _ready_connection(self, node: Node) -> Connection:
        while True:
            now_ms = self.clock.monotonic_ms()
            delay_ms = self.states.connection_delay_ms(node.id, now_ms)
            if delay_ms > 0:
                await trio.sleep(delay_ms / 1000)
                continue
            self.connect_soon(node)
            link = self._links[node.id]
            await link.settled.wait()
            if link.failure is not None:
                raise type(link.failure)(*link.failure.args) from link.failure
            pause_ms = self.states.throttle_delay_ms(node.id, self.clock.monotonic_ms())
            if pause_ms == 0 and link.connection is not None:
                return link.connection
            await trio.sleep(pause_ms / 1000)

    async def _run_link(self, link: Link) -> None:
        failure: ClientError = ClientClosedError("the client was closed")
        try:
            with link.scope:
                connection = await self._establish(link)
                self._require_current(link, connection)
                link.connection = connection
                link.settled.set()
                self.states.ready(link.node.id)
                if self._listener is not None:
                    connection.on_reauthenticated = partial(
                        self._listener.connection_ready, link.node
                    )
                    self._listener.connection_ready(link.node)
                failure = await connection.wait_closed()
        except ClientError as error:
            failure = error
        except Exception as error:
            logger.exception("the connection to node %d failed", link.node.id)
            failure = DisconnectedError(f"node {link.node.id}: {type(error).__name__}")
        finally:
            if link.connection is not None:
                link.connection.close(failure)
            self._end(link, failure)

    async def _establish(self, link: Link) -> Connection:
        """A connection that is ready for requests."""
        node = link.node
        stream = await open_stream(
            node.host,
            node.port,
            connect=self._connect,
            ssl_context=self._ssl_context,
            timeout_ms=self.states.setup_timeout_ms(node.id),
        )
        peer = f"node {node.id} ({node.address})"
        connection = Connection(stream, peer, self.settings, self.clock, node.host)
        if self.nursery is None:
            await trio.aclose_forcefully(stream)
            raise ClientClosedError("the client was closed")
        self.nursery.start_soon(connection.run)
        self._require_current(link, connection)
        self.states.connected(node.id)
        try:
            await prepare(connection, self._fixed_versions, self._authenticate)
        except BaseException:
            connection.close()
            raise
        return connection

    def _require_current(self, link: Link, connection: Connection) -> None:
        """Make sure that nobody disconnected while this link was waiting for something."""
        if self._links.get(link.node.id) is not link:
            connection.close()
            raise DisconnectedError(f"node {link.node.id} was disconnected from")

    def _end(self, link: Link, failure: ClientError) -> None:
        """A link ended: note it, wake its waiters, and call the listener."""
        node = link.node
        if self._links.get(node.id) is not link:
            return
        del self._links[node.id]
        now_ms = self.clock.monotonic_ms()
        if isinstance(failure, AuthenticationError):
            self.states.authentication_failed(node.id, now_ms)
            logger.error("node %d (%s): %s", node.id, node.address, failure)
        else:
            self.states.disconnected(node.id, now_ms)
        was_ready = link.connection is not None
        if not was_ready:
            link.failure = failure
            link.settled.set()
        if link.is_closing or self._listener is None:
            return
        if isinstance(failure, RequestTimeoutError):
            self._listener.request_timed_out(node, failure)
        elif was_ready:
            self._listener.connection_lost(node, failure)
        else:
            self._listener.connection_failed(node, failure)

    def _note_throttling(
        self,
        node_id: int,
        connection: Connection,
        request: Message,
        response: Any,
        version: int | None,
        version_max: int | None,
    ) -> None:
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        api_key = type(request).api_key
        if throttle_ms <= 0 or api_key is None:
            return
        used = connection.versions.usable(api_key, version=version, version_max=version_max)
        self.note_throttling(node_id, api_key, used, throttle_ms)
