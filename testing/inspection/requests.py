"""The request log of a broker, as a test asks it: `broker.requests.of("Produce").count()`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..control.client import ControlClient

Lines = list[str]

SHOWN_MAX = 50
"""How many lines are shown unless more are asked for."""


class LoggedRequest(NamedTuple):
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
    errors: tuple[str, ...] | None
    took: float | None

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


class Requests:
    """The requests of a broker, all of them or those that `of` and `since` leave.

    Args:
        control: of the broker, when it is needed.
        forget: how they are forgotten where the broker is to keep them for others: it is told the
            number of the latest.
        wanted: which.
    """

    def __init__(
        self,
        control: Callable[[], ControlClient],
        forget: Callable[[int], None] | None = None,
        **wanted: Any,
    ) -> None:
        self._control = control
        self._forget = forget
        self._wanted = {name: value for name, value in wanted.items() if value is not None}

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
        more = {
            "api": api,
            "version": version,
            "client_id": client_id,
            "topic": topic,
            "partition": partition,
            "group": group,
            "transactional_id": transactional_id,
            "error": None if error is None else _error_name(error),
        }
        return Requests(self._control, self._forget, **{**self._wanted, **_given(more)})

    def since(self, mark: int) -> Requests:
        """Those of them that came after the request of this number."""
        return Requests(self._control, self._forget, **{**self._wanted, "since": mark})

    def count(self) -> int:
        """How many there are.

        Raises:
            ControlError: the broker has forgotten some that may be meant.
        """
        found: int = self._control().call("requests.count", **self._wanted)
        return found

    def list(self, limit: int = 1000) -> list[LoggedRequest]:
        """The last of them, oldest first."""
        found = self._control().call("requests.find", limit=limit, **self._wanted)
        return [read_logged(each) for each in found]

    def last(self) -> LoggedRequest | None:
        """The latest of them; None: there is none."""
        found = self.list(1)
        return found[0] if found else None

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self.list())

    def lines(self, since: int | None = None, limit: int = SHOWN_MAX) -> Lines:
        """The last of them as lines to read."""
        asked = self if since is None else self.since(since)
        return [str(each) for each in asked.list(limit)]

    def mark(self) -> int:
        """The number of the broker's latest request, for `since`."""
        number: int = self._control().call("requests.mark")
        return number

    def clear(self) -> None:
        """Have the broker forget all its requests; their numbers go on."""
        if self._forget is not None:
            self._forget(self.mark())
        else:
            self._control().call("requests.clear")

    def __repr__(self) -> str:
        wanted = ", ".join(f"{name}={value!r}" for name, value in self._wanted.items())
        return f"<requests of the broker{' with ' + wanted if wanted else ''}>"


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _error_name(name: str) -> str:
    from difflib import get_close_matches

    from ...common.errors import ErrorCode

    wanted = name.upper()
    if wanted in ErrorCode.__members__:
        return wanted
    near = get_close_matches(wanted, ErrorCode.__members__, n=1)
    raise ValueError(f"there is no error {name!r}" + (f": did you mean {near[0]}?" if near else ""))


def read_logged(found: dict[str, Any]) -> LoggedRequest:
    """A request as it came over the control channel."""
    took_ms, errors = found.pop("took_ms"), found.pop("errors")
    return LoggedRequest(
        number=found["number"],
        time=found["time_ms"] / 1000,
        api=found["api"],
        version=found["version"],
        client_id=found["client_id"],
        correlation_id=found["correlation_id"],
        peer=found["peer"],
        topics=tuple(found["topics"]),
        partitions=tuple((topic, partition) for topic, partition in found["partitions"]),
        groups=tuple(found["groups"]),
        transactional_ids=tuple(found["transactional_ids"]),
        errors=None if errors is None else tuple(errors),
        took=None if took_ms is None else took_ms / 1000,
    )
