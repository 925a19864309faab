"""The last requests of a broker and what it answered: `broker.requests.of("Produce").count()`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..control.verbs import verb

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.request_metrics import ErrorCounts
    from ...broker.request.requests import Request
    from ..control.client import ControlClient
    from ..control.target import ControlTarget

CAPACITY = 20_000
"""How many requests are remembered; one takes about a kilobyte."""
NAMES_MAX = 500_000
"""How many names they may have together: one request can name all topics there are."""
LINES_MAX = 50
"""How many lines are shown unless the call says otherwise."""

Lines = list[str]


@dataclass(slots=True)
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

    @property
    def name_count(self) -> int:
        """How many names it holds."""
        return len(self.topics) + len(self.partitions) + len(self.groups) + 1

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
    since: int = 0

    def passes(self, logged: LoggedRequest) -> bool:
        """Whether a request is one of them."""
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


ALL_REQUESTS = RequestFilter()


# -- in the broker's process ----------------------------------------------------------------------


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

    def note(self, request: Request) -> None:
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

    def note_answer(self, request: Request, response: Any) -> None:
        """The broker answers a request; a fault may still change or lose the answer."""
        logged = self._unanswered.pop(id(request), None)
        if logged is not None:
            logged.took = self._broker.clock.now_ms() / 1000 - logged.time
            logged.errors = self._errors_in(request, response)

    def _errors_in(self, request: Request, response: Any) -> tuple[str, ...]:
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


@verb
def mark(target: ControlTarget) -> int:
    """The number of the latest request."""
    return target.request_log.latest


@verb
def count(target: ControlTarget, which: RequestFilter) -> int:
    """How many requests pass a filter."""
    return sum(1 for _ in target.request_log.find(which))


@verb
def find(target: ControlTarget, which: RequestFilter, limit: int) -> list[LoggedRequest]:
    """The last requests that pass a filter, oldest first."""
    return target.request_log.last(which, limit)


@verb
def remember(target: ControlTarget, most: int) -> None:
    """Remember no more than so many requests from now on."""
    target.request_log.capacity = most


@verb
def clear(target: ControlTarget) -> None:
    """Forget all requests."""
    target.request_log.clear()


# -- in a test's process --------------------------------------------------------------------------


class Requests:
    """The requests of a broker, all of them or those that `of` and `since` leave.

    Args:
        control: gives the channel of the broker.
        forget: how `clear` forgets them where the broker is to keep them for others: it is given
            the number of the latest.
        which: all of them pass it.
    """

    def __init__(
        self,
        control: Callable[[], ControlClient],
        forget: Callable[[int], None] | None = None,
        which: RequestFilter = ALL_REQUESTS,
    ) -> None:
        self._control = control
        self._forget = forget
        self._which = which

    def of(
        self,
        api: str | None = None,
        *,
        version: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        error: str | None = None,
    ) -> Requests:
        """Those of them that are of this API and name all of this.

        Args:
            api: Kafka's name, such as "Produce".
            client_id: of the client.
            error: that is in the broker's answer, by Kafka's name.

        Raises:
            ValueError: there is no such API or error; the sentence names the nearest.
        """
        if api is not None:
            from ..faults.matcher import api_name

            api = api_name(api)
        if error is not None:
            from ..faults.kinds import error_name

            error = error_name(error)
        named = {
            "api": api,
            "version": version,
            "client_id": client_id,
            "topic": topic,
            "partition": partition,
            "group": group,
            "transactional_id": transactional_id,
            "error": error,
        }
        return self._narrowed(**{key: each for key, each in named.items() if each is not None})

    def since(self, mark: int) -> Requests:
        """Those of them that came after the request of this number."""
        return self._narrowed(since=mark)

    def _narrowed(self, **named: Any) -> Requests:
        return Requests(self._control, self._forget, self._which._replace(**named))

    def count(self) -> int:
        """How many there are.

        Raises:
            ControlError: the broker has forgotten some that may be meant.
        """
        return count.on(self._control())(self._which)

    def list(self, limit: int = 1000) -> list[LoggedRequest]:
        """The last of them, oldest first."""
        return find.on(self._control())(self._which, limit)

    def last(self) -> LoggedRequest | None:
        """The latest of them; None: there is none."""
        found = self.list(1)
        return found[0] if found else None

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self.list())

    def lines(self, since: int | None = None, limit: int = LINES_MAX) -> Lines:
        """The last of them as lines to read."""
        requests = self if since is None else self.since(since)
        return [str(each) for each in requests.list(limit)]

    def mark(self) -> int:
        """The number of the broker's latest request, for `since`."""
        return mark.on(self._control())()

    def clear(self) -> None:
        """Have the broker forget all its requests; their numbers go on."""
        if self._forget is not None:
            self._forget(self.mark())
        else:
            clear.on(self._control())()

    def __repr__(self) -> str:
        which = ", ".join(
            f"{name}={value!r}" for name, value in self._which._asdict().items() if value
        )
        return f"<requests of the broker{' with ' + which if which else ''}>"
