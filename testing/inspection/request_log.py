"""The last requests of a broker, and what it answered."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.request_metrics import ErrorCounts
    from ...broker.request.requests import Request

CAPACITY = 20_000
"""How many requests are remembered; one takes about a kilobyte."""
NAMES_MAX = 500_000
"""How many names they may have together: one request can name all topics there are."""
_FETCHER = re.compile(r"broker-\d+-fetcher-\d+")
"""The client id of a follower's fetcher."""


@dataclass(slots=True, repr=False)
class LoggedRequest:
    """A request that a broker was sent.

    Attributes:
        number: counts all requests of the broker, from 1.
        time: when it came, by the broker's clock, in seconds since the epoch.
        api: Kafka's name, such as "Produce".
        peer: the client's address.
        topics, partitions, groups, transactional_ids: what it names.
        errors: in the broker's answer, by Kafka's names; None: it is not answered.
        took: until the broker answered, in seconds.
        is_replication: whether it is a follower's fetch, or what else its fetcher sends.
    """

    number: int
    time: float
    api: str
    version: int
    client_id: str
    correlation_id: int
    peer: str
    topics: tuple[str, ...]
    partitions: tuple[tuple[str, int], ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    errors: tuple[str, ...] | None = None
    took: float | None = None
    is_replication: bool = False

    @property
    def name_count(self) -> int:
        """How many names it holds."""
        return len(self.topics) + len(self.partitions) + len(self.groups) + 1

    def __repr__(self) -> str:
        return f"<request {self}>"

    def __str__(self) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(self.time))
        named = [f"{topic}-{partition}" for topic, partition in self.partitions]
        on = {topic for topic, _ in self.partitions}
        named += [topic for topic in self.topics if topic not in on]
        parts = [f"on {', '.join(named)}"] if named else []
        parts += [f"group {name}" for name in self.groups]
        parts += [f"transactional id {name}" for name in self.transactional_ids]
        if self.errors is None or self.took is None:
            parts.append("is not answered")
        else:
            outcome = ", ".join(self.errors) or "answered"
            parts.append(f"{outcome} after {self.took * 1000:.0f} ms")
        milliseconds = round(self.time % 1 * 1000) % 1000
        return (
            f"#{self.number} {when}.{milliseconds:03d} {self.api} v{self.version} from "
            f"{self.client_id or 'nobody'} at {self.peer} {', '.join(parts)}"
        )


class RequestFilter(NamedTuple):
    """The requests that all of these are true of; None lets all pass.

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
    is_replication: bool | None = None
    since: int = 0

    def passes(self, logged: LoggedRequest) -> bool:
        """Whether a request is one of them."""
        return (
            logged.number > self.since
            and self.api in (None, logged.api)
            and self.version in (None, logged.version)
            and self.client_id in (None, logged.client_id)
            and self.is_replication in (None, logged.is_replication)
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
    """Remembers the last requests of a broker.

    Args:
        broker: whose requests they are.

    Attributes:
        latest: the number of the latest request.
        capacity: how many it remembers.
    """

    def __init__(self, broker: Broker) -> None:
        self.latest = 0
        self.capacity = CAPACITY
        self._broker = broker
        self._logged: deque[tuple[int, LoggedRequest]] = deque()
        """With the identity of the request, which `_unanswered` has as a key."""
        self._unanswered: dict[int, LoggedRequest] = {}
        self._names = 0
        self._errors: dict[tuple[int, int], ErrorCounts] = {}
        self._forgotten = 0

    def note(self, request: Request[Any]) -> None:
        """A request has come, and nothing was done with it yet.

        What its body refers to is valid only until this returns: records lie in memory that is
        used again.
        """
        from ..control.request_names import names_in

        if request.body is None:  # of a version that is not known
            return
        self.latest += 1
        names = names_in(request, self._broker)
        logged = LoggedRequest(
            self.latest,
            self._broker.clock.now_ms() / 1000,
            type(request.body).__name__.removesuffix("Request"),
            request.api_version,
            request.client_id,
            request.correlation_id,
            request.connection.peer,
            tuple(sorted(names.topics)),
            tuple(sorted(names.partitions)),
            tuple(sorted(names.groups)),
            tuple(sorted(names.transactional_ids)),
            is_replication=_is_replication(request),
        )
        self._logged.append((id(request), logged))
        self._names += logged.name_count
        self._unanswered[id(request)] = logged
        while len(self._logged) > self.capacity or self._names > NAMES_MAX:
            key, oldest = self._logged.popleft()
            self._names -= oldest.name_count
            self._forgotten = oldest.number
            if self._unanswered.get(key) is oldest:
                del self._unanswered[key]

    def note_answer(self, request: Request[Any], response: Any) -> None:
        """The broker answers a request; a fault may still change or lose the answer."""
        logged = self._unanswered.pop(id(request), None)
        if logged is not None:
            logged.took = self._broker.clock.now_ms() / 1000 - logged.time
            logged.errors = self._errors_in(request, response)

    def _errors_in(self, request: Request[Any], response: Any) -> tuple[str, ...]:
        from ...broker.request.request_metrics import ErrorCounts
        from ...protocol.messages import response_message

        key = (request.api_key, request.api_version)
        counts = self._errors.get(key)
        if counts is None:
            message = response_message(request.api_key)
            counts = self._errors[key] = ErrorCounts(message, request.api_version)
        counts.counts.clear()
        counts.count(response)
        return tuple(name for name, _ in counts.by_name() if name != "NONE")

    def find(self, which: RequestFilter) -> Iterator[LoggedRequest]:
        """The requests that pass a filter, oldest first.

        Raises:
            ValueError: some that may have passed are forgotten.
        """
        if which.since < self._forgotten:
            raise ValueError(
                f"the broker remembers its last {self.capacity} requests, and number "
                f"{self._forgotten} and all before it are forgotten: ask only for those since a "
                "mark, as in requests.since(mark), or clear() it now and then"
            )
        return (logged for _, logged in self._logged if which.passes(logged))

    def last(self, which: RequestFilter, limit: int) -> list[LoggedRequest]:
        """The last requests that pass a filter, oldest first, as far as they are remembered."""
        found: list[LoggedRequest] = []
        for _, logged in reversed(self._logged):
            if len(found) >= limit or logged.number <= which.since:
                break
            if which.passes(logged):
                found.append(logged)
        return found[::-1]

    def clear(self) -> None:
        """Forget all of them; numbers go on."""
        self._logged.clear()
        self._unanswered.clear()
        self._forgotten = self._names = 0


def _is_replication(request: Request[Any]) -> bool:
    """Whether a request is a follower's fetch, in the older versions or the newer ones, or what
    else its fetcher sends, such as its login.
    """
    body = request.body
    state = getattr(body, "replica_state", None)
    ids = getattr(body, "replica_id", -1), getattr(state, "replica_id", -1)
    is_fetch = type(body).__name__ == "FetchRequest" and max(ids) >= 0
    return is_fetch or bool(_FETCHER.fullmatch(request.client_id or ""))
