"""The requests of a broker, as a test sees them: `broker.requests.of("Produce").count()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..control.verbs import verb
from .request_log import LoggedRequest, RequestFilter

if TYPE_CHECKING:
    from ..control.client import ControlClient
    from ..control.target import ControlTarget

LINES_MAX = 50
"""How many lines are shown unless the call says otherwise."""
ALL_REQUESTS = RequestFilter()

Lines = list[str]


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
