"""A scenario's side of the conversation with one broker: requests by which it asks.

Every answer is noted and compared later with the other broker's. What takes a moment on a broker
(a topic that its other threads do not know yet, a coordinator that loads) is sent again
until it is there, and only the last answer counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from ...common.errors import ErrorCode
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.codec.message import Message
from ...protocol.errors import ProtocolError
from .connection import BlockingConnection, ConnectionClosedError, Login
from .requests import BY_ID_FROM, LATEST, batch, metadata_of, numbered, offset_listing, production
from .transcript import CLOSED, SILENT, Transcript, errors_of

SETTLE_SECONDS_MAX = 120.0
RETRY_SECONDS = 0.01

TRANSIENT_ERRORS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors that say: ask again."""

NOT_LED_YET = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""What Kafka says of a partition that is in its metadata, before its replica is ready."""

PRODUCE_BY_NAME = BY_ID_FROM - 1

GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators."""


class NotSettledError(Exception):
    """What a scenario waits for did not come; the message says what came instead."""


class Talk:
    """One scenario's conversation with one broker; a context manager that closes it.

    Args:
        address: HOST:PORT of the broker.
        title: the scenario's, from which its names of topics and groups are made.
        version: of the API that the scenario is about.
        transcript: takes every answer.
        login: who its connections log in as, where the broker requires it.

    Attributes:
        version: of the API that the scenario is about.
        port: the broker's.
    """

    def __init__(
        self,
        address: str,
        title: str,
        version: int,
        transcript: Transcript,
        login: Login | None = None,
    ) -> None:
        self.version = version
        self.port = int(address.rpartition(":")[2])
        self._address = address
        self._title = title
        self._transcript = transcript
        self._login = login
        self._connection: BlockingConnection | None = None
        self._waiting: tuple[int, int] | None = None
        self._others: list[Talk] = []

    def name(self, suffix: str = "") -> str:
        """A name that no other scenario uses, and that is the same on both brokers."""
        return f"{self._title}-{suffix}" if suffix else self._title

    def another(self, login: Login | None = None) -> Talk:
        """Another connection of the same scenario, and perhaps user; closed with this one."""
        other = Talk(
            self._address, self._title, self.version, self._transcript, login or self._login
        )
        self._others.append(other)
        return other

    # -- one request -----------------------------------------------------------------------

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Send a request, note its answer, and return it.

        Args:
            request: the request.
            version: its version; None: the newest that both brokers serve.

        Raises:
            ConnectionClosedError: the broker closed the connection, which is noted, too.
        """
        self.send(request, version)
        return self.receive()

    def send(self, request: Message, version: int | None = None) -> None:
        """Send a request; `receive` takes its answer."""
        key = type(request).api_key
        assert key is not None
        version = newest(request) if version is None else version
        self._waiting = key, version
        self.connection.send(request, version)

    def receive(self) -> Any:
        """Note and return the answer to the request that was sent."""
        assert self._waiting is not None
        return self._noted(*self._waiting, self._receive)

    def quietly(self, request: Message, version: int | None = None) -> Any:
        """Send a request and return its answer, which is not compared."""
        self.send(request, version)
        assert self._waiting is not None
        return self._receive(*self._waiting)

    def refused(self, request: Message, version: int | None = None) -> None:
        """Send a request that closes the connection, perhaps; go on with a new one if so."""
        try:
            self.ask(request, version)
        except ConnectionClosedError:
            self.reconnect()

    def refused_bytes(self, request: Message, version: int, body: bytes) -> None:
        """The same with bytes of one's own in place of a request's body."""
        key = type(request).api_key
        assert key is not None
        self.connection.send_body(request, version, body)
        # ApiVersions is answered in version 0 where there is no such version (KIP-511).
        self._waiting = key, version if version in type(request).versions else 0
        try:
            self.receive()
        except (ConnectionClosedError, ProtocolError):
            self.reconnect()

    def refused_frame(self, frame: bytes | None) -> None:
        """Send a whole frame of one's own, or nothing more (None), and note what comes.

        An answer is taken for one of ApiVersions in version 0.
        """
        if frame is not None:
            self.connection.send_frame(frame)
        self._waiting = ApiKey.API_VERSIONS, 0
        try:
            self.receive()
        except (ConnectionClosedError, ProtocolError):
            self.reconnect()

    def unanswered(self, request: Message, version: int | None = None) -> None:
        """Send a request that gets no answer: what comes next answers the next one."""
        self.send(request, version)
        assert self._waiting is not None
        self._transcript.note(*self._waiting, SILENT)

    def settled(
        self,
        request: Message,
        version: int | None = None,
        *,
        until: Callable[[Any], bool] | None = None,
        passing: Iterable[ErrorCode] = TRANSIENT_ERRORS,
    ) -> Any:
        """Ask again until a condition holds and no error is one that passes; note that answer.

        Args:
            request: the request.
            version: its version; None: the newest.
            until: what has to hold of the answer.
            passing: errors that say to ask again.

        Raises:
            ConnectionClosedError: the broker closed the connection, which is noted, too.
            NotSettledError: it did not come to that within `SETTLE_SECONDS_MAX`.
        """
        answer = self.settle_quietly(request, version, until=until, passing=passing)
        assert self._waiting is not None
        self._transcript.note(*self._waiting, answer)
        return answer

    def settle_quietly(
        self,
        request: Message,
        version: int | None = None,
        *,
        until: Callable[[Any], bool] | None = None,
        passing: Iterable[ErrorCode] = TRANSIENT_ERRORS,
    ) -> Any:
        """The same, without noting the answer."""
        retry = frozenset(passing)
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            self.send(request, version)
            assert self._waiting is not None
            try:
                answer = self._receive(*self._waiting)
            except ConnectionClosedError:
                self._transcript.note(*self._waiting, CLOSED)
                raise
            if retry.isdisjoint(errors_of(answer)) and (until is None or until(answer)):
                return answer
            if time.monotonic() > deadline:
                raise NotSettledError(f"waited too long; the last answer is {answer!r}")
            time.sleep(RETRY_SECONDS)  # another process has no event to wait for

    # -- the connection --------------------------------------------------------------------

    @property
    def connection(self) -> BlockingConnection:
        """The connection, made when it is first used."""
        if self._connection is None:
            self._connection = BlockingConnection(self._address, login=self._login)
        return self._connection

    def reconnect(self) -> None:
        """Go on with a new connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def close(self) -> None:
        """Close every connection of the scenario."""
        for other in self._others:
            other.close()
        self.reconnect()

    def _receive(self, api_key: int, version: int) -> Any:
        return self.connection.receive(api_key, version)

    def _noted(self, api_key: int, version: int, receive: Callable[[int, int], Any]) -> Any:
        try:
            answer = receive(api_key, version)
        except ConnectionClosedError:
            self._transcript.note(api_key, version, CLOSED)
            raise
        except ProtocolError as error:
            self._transcript.note(api_key, version, f"an answer that cannot be read: {error}")
            raise
        self._transcript.note(api_key, version, answer)
        return answer

    # -- what most scenarios begin with ----------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, settings: dict[str, str] | None = None
    ) -> bytes:
        """Create a topic and wait until it has leaders; returns its id."""
        of_topic = messages.CreateTopicsRequest.CreatableTopic
        setting = messages.CreateTopicsRequest.CreatableTopicConfig
        self.ask(
            messages.CreateTopicsRequest(
                topics=[
                    of_topic(
                        name=name,
                        num_partitions=partitions,
                        replication_factor=1,
                        configs=[
                            setting(name=key, value=value)
                            for key, value in (settings or {}).items()
                        ],
                    )
                ],
                timeout_ms=30_000,
            )
        )
        return self.wait_for_topic(name, partitions)

    def wait_for_topic(self, name: str, partitions: int = 1) -> bytes:
        """Wait until a topic has so many partitions with leaders; returns its id."""

        def is_there(answer: Any) -> bool:
            (topic,) = answer.topics
            found = [each for each in topic.partitions if each.error_code == ErrorCode.NONE]
            return topic.error_code == ErrorCode.NONE and len(found) == partitions

        topic_id = bytes(self.settled(metadata_of(name), until=is_there).topics[0].topic_id)
        listing = offset_listing(name, dict.fromkeys(range(partitions), LATEST))
        self.settled(listing, passing=NOT_LED_YET)
        return topic_id

    def wait_until_gone(self, name: str) -> None:
        """Wait until a deleted topic is unknown."""
        gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.settled(
            metadata_of(name), until=lambda answer: bool(answer.topics[0].error_code == gone)
        )

    def produce(self, topic: str, partition: int = 0, count: int = 1, **settings: Any) -> Any:
        """Append one batch of so many records, with `batch`'s settings."""
        records = batch(*numbered(count), **settings)
        return self.ask(production(topic, {partition: records}), PRODUCE_BY_NAME)

    def wait_for_coordinator(self, key: str, kind: int = GROUP) -> None:
        """Wait until a group or a transactional id has its coordinator."""
        request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        self.settled(request)

    def __enter__(self) -> Talk:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def newest(request: Message) -> int:
    """The newest version of a request that both brokers serve."""
    key = type(request).api_key
    assert key is not None
    return served_versions()[key][-1]


def served_versions() -> dict[int, range]:
    """The versions that odradek serves to clients, by API key."""
    from ...broker.handlers.registry import REGISTRATIONS

    return {
        key: registration.versions
        for key, registration in REGISTRATIONS.items()
        if registration.advertised is not None
    }
