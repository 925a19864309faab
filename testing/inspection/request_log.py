"""The requests that a broker was sent, and what it answered: the last thousands of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.error_counts import ErrorCounts
    from ...broker.request.requests import Request

CAPACITY = 20_000
"""How many requests are remembered; one takes about a kilobyte."""
NAMES_MAX = 500_000
"""How many names they may have together: one request can name all topics there are."""


class LoggedRequest:
    """One request.

    Attributes:
        number: counts all requests of the broker, from 1.
        time_ms: when it came, by the broker's clock.
        api: Kafka's name.
        peer: the client's address.
        topics, partitions, groups, transactional_ids: what it names.
        errors: in its answer, by their names; None: not answered (yet).
        took_ms: until it was answered.
    """

    __slots__ = (
        "api",
        "client_id",
        "correlation_id",
        "errors",
        "groups",
        "key",
        "number",
        "partitions",
        "peer",
        "time_ms",
        "took_ms",
        "topics",
        "transactional_ids",
        "version",
    )

    def __init__(self, number: int, request: Request, broker: Broker) -> None:
        from ..control.request_names import names_in

        names = names_in(request, broker)
        self.number = number
        self.key = id(request)
        self.time_ms = broker.clock.now_ms()
        self.api: str = type(request.body).__name__.removesuffix("Request")
        self.version = request.api_version
        self.client_id = request.client_id
        self.correlation_id = request.correlation_id
        self.peer = request.connection.peer
        self.topics = sorted(names.topics)
        self.partitions = sorted(names.partitions)
        self.groups = sorted(names.groups)
        self.transactional_ids = sorted(names.transactional_ids)
        self.errors: list[str] | None = None
        self.took_ms: int | None = None

    @property
    def names(self) -> int:
        """How many names it takes to tell of it."""
        return len(self.topics) + len(self.partitions) + len(self.groups) + 1

    def as_json(self) -> dict[str, Any]:
        """All of it, for the control channel."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "key"}


class RequestFilter(NamedTuple):
    """Which requests are meant: those that all of these are true of; None lets all pass.

    Attributes:
        since: only those after the request of this number.
    """

    api: str | None = None
    version: int | None = None
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    error: str | None = None
    since: int = 0

    def passes(self, logged: LoggedRequest) -> bool:
        """Whether a request is meant."""
        return (
            logged.number > self.since
            and self.api in (None, logged.api)
            and self.version in (None, logged.version)
            and self.client_id in (None, logged.client_id)
            and (self.group is None or self.group in logged.groups)
            and (self.transactional_id is None or self.transactional_id in logged.transactional_ids)
            and (self.error is None or self.error in (logged.errors or ()))
            and self._is_on_topic(logged)
        )

    def _is_on_topic(self, logged: LoggedRequest) -> bool:
        if self.partition is None:
            return self.topic is None or self.topic in logged.topics
        return any(
            self.topic in (None, topic) and partition == self.partition
            for topic, partition in logged.partitions
        )


class RequestLog:
    """Remembers the last requests of a broker; it is shown them by the control channel's hooks.

    Args:
        broker: whose requests they are.
        capacity: how many it remembers.

    Attributes:
        latest: the number of the latest request.
        capacity: how many it remembers.
    """

    def __init__(self, broker: Broker, capacity: int = CAPACITY) -> None:
        self.latest = 0
        self._broker = broker
        self.capacity = capacity
        self._logged: deque[LoggedRequest] = deque()
        self._unanswered: dict[int, LoggedRequest] = {}
        self._names = 0
        self._errors: dict[tuple[int, int], ErrorCounts] = {}
        self._forgotten = 0

    def note(self, request: Request) -> None:
        """A request has come."""
        if request.body is None:  # of a version that is not known
            return
        self.latest += 1
        logged = LoggedRequest(self.latest, request, self._broker)
        self._logged.append(logged)
        self._names += logged.names
        self._unanswered[logged.key] = logged
        while len(self._logged) > self.capacity or self._names > NAMES_MAX:
            oldest = self._logged.popleft()
            self._names -= oldest.names
            self._forgotten = oldest.number
            if self._unanswered.get(oldest.key) is oldest:
                del self._unanswered[oldest.key]

    def note_answer(self, request: Request, response: Any) -> None:
        """The broker answers it."""
        logged = self._unanswered.pop(id(request), None)
        if logged is None:
            return
        logged.took_ms = self._broker.clock.now_ms() - logged.time_ms
        logged.errors = self._errors_in(request, response)

    def _errors_in(self, request: Request, response: Any) -> list[str]:
        from ...broker.request.error_counts import ErrorCounts
        from ...protocol.messages import response_message

        key = (request.api_key, request.api_version)
        counts = self._errors.get(key)
        if counts is None:
            message = response_message(request.api_key)
            counts = self._errors[key] = ErrorCounts(message, request.api_version)
        counts.counts.clear()
        counts.count(response)
        return [name for name, _ in counts.by_name() if name != "NONE"]

    def find(self, wanted: RequestFilter) -> Iterator[LoggedRequest]:
        """The requests that are meant, oldest first.

        Raises:
            ValueError: some that may have been meant are forgotten.
        """
        if wanted.since < self._forgotten:
            raise ValueError(
                f"the broker remembers its last {self.capacity} requests, and number "
                f"{self._forgotten} and all before it are forgotten: ask only for those since a "
                "mark, as in requests.since(mark), or clear() it now and then"
            )
        return (logged for logged in self._logged if wanted.passes(logged))

    def last(self, wanted: RequestFilter, limit: int) -> list[LoggedRequest]:
        """The last requests that are meant, oldest first, as far as they are remembered."""
        found: list[LoggedRequest] = []
        for logged in reversed(self._logged):
            if len(found) >= limit or logged.number <= wanted.since:
                break
            if wanted.passes(logged):
                found.append(logged)
        return found[::-1]

    def clear(self) -> None:
        """Forget all of them; numbers go on."""
        self._logged.clear()
        self._unanswered.clear()
        self._forgotten = self._names = 0


def request_log_of(broker: Broker) -> RequestLog:
    """A log for the requests of a broker."""
    return RequestLog(broker)
