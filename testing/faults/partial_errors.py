"""Errors for those parts of a request that a fault is about, while the others are handled.

A request may name many topics, partitions or groups. Where Kafka answers each for itself, a fault
takes what it is about out of the request before the broker handles it, and puts its errors beside
the broker's answers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.errors import ErrorCode
from ...common.sentinels import ZERO_UUID
from ...protocol.api_keys import ApiKey
from ...protocol.error_response import ECHOES, Echo, error_response

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.requests import Request
    from .matcher import Match

GROUP_ARRAYS = frozenset({"groups", "groups_names", "group_ids"})
TOPIC_ARRAYS = frozenset({"topics", "topic_data", "topic_names", "v3_and_below_topics"})
PARTITION_FIELDS = ("partition", "partition_index", "index")


class PartialErrors(NamedTuple):
    """What was taken out of a request.

    Attributes:
        body: a request of nothing else.
        error: for each part of it.
    """

    body: Any
    error: ErrorCode

    def beside(self, request: Request, response: Any) -> Any:
        """The broker's answer to the rest, with the errors of what was taken out."""
        errors = error_response(request.api_key, request.api_version, self.body, self.error)
        for echo in ECHOES[ApiKey(request.api_key)]:
            _merge(echo, getattr(errors, echo.target), getattr(response, echo.target))
        return response


def take_out(
    request: Request, match: Match, error: ErrorCode, broker: Broker
) -> PartialErrors | None:
    """Take out of a request what a fault is about.

    Args:
        request: its body is changed, if anything is taken out and something is left.
        match: what the fault is about; something of it is in the request.
        error: what it answers.
        broker: knows topics' ids.

    Returns:
        What was taken out; None if the fault is about all of the request.
    """
    body = request.body
    taken, left = {}, {}
    for echo in ECHOES.get(ApiKey(request.api_key), ()):
        belongs = _chooser(echo, match, broker)
        elements = None if "." in echo.source else getattr(body, echo.source)
        if belongs is None or not elements:
            continue
        taken[echo.source], left[echo.source] = _divide(echo, elements, match, belongs)
    if not any(left.values()):
        return None
    out = copy.copy(body)
    for source in taken:
        setattr(out, source, taken[source])
        setattr(body, source, left[source])
    return PartialErrors(out, error)


def _chooser(echo: Echo, match: Match, broker: Broker) -> Callable[[Any], bool] | None:
    """Tells whether a fault is about an element; None where all elements are alike to it."""
    if echo.source in GROUP_ARRAYS and match.group is not None:
        return lambda element: getattr(element, "group_id", element) == match.group
    if echo.source in TOPIC_ARRAYS and (match.topic, match.partition) != (None, None):
        return lambda element: match.topic in (None, _topic_name(element, broker))
    if echo.source == "transactional_ids" and match.transactional_id is not None:
        return lambda element: bool(element == match.transactional_id)
    return None


def _topic_name(element: Any, broker: Broker) -> str | None:
    if isinstance(element, str):
        return element
    topic_id = getattr(element, "topic_id", None)
    if topic_id and topic_id != ZERO_UUID:
        return broker.metadata_cache.topic_name(topic_id)
    name: str | None = getattr(element, "name", None) or getattr(element, "topic", None)
    return name


def _divide(
    echo: Echo, elements: list[Any], match: Match, belongs: Callable[[Any], bool]
) -> tuple[list[Any], list[Any]]:
    """The elements that a fault is about, and the others; a topic may be on both sides."""
    taken: list[Any] = []
    left: list[Any] = []
    for element in elements:
        if not belongs(element):
            left.append(element)
        elif echo.inner is None or match.partition is None:
            taken.append(element)
        else:
            source = echo.inner.source
            parts = getattr(element, source)
            struck = [part for part in parts if _partition(part) == match.partition]
            spared = [part for part in parts if _partition(part) != match.partition]
            for side, chosen in ((taken, struck), (left, spared)):
                if chosen:
                    half = copy.copy(element)
                    setattr(half, source, chosen)
                    side.append(half)
    return taken, left


def _partition(part: Any) -> int | None:
    if isinstance(part, int):
        return part
    for field in PARTITION_FIELDS:
        index: int | None = getattr(part, field, None)
        if index is not None:
            return index
    return None


def _merge(echo: Echo, errors: list[Any], answers: list[Any]) -> None:
    """Put errors among answers: those of a topic that was answered in part, with its others."""
    keys = [item.partition("=")[0] for item in echo.copied.split()]
    for error in errors:
        same = [
            answer
            for answer in answers
            if all(getattr(answer, key) == getattr(error, key) for key in keys)
        ]
        if echo.inner is not None and same:
            getattr(same[0], echo.inner.target).extend(getattr(error, echo.inner.target))
        else:
            answers.append(error)
