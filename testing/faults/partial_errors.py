"""Errors for those parts of a request that a fault is about; the others are handled.

A request may name many topics, partitions or groups. Where Kafka answers each for itself, a fault
takes what it is about out of the request before the broker handles it, and puts its errors beside
the broker's answers. A Fetch goes on with a session and a Metadata answer describes the whole
cluster: an answer that held nothing but errors would tell a client more than the error that it was
meant to see. So the broker handles these, and the error takes the place of what it found.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.errors import ErrorCode
from ...common.sentinels import ZERO_UUID
from ...protocol import messages
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

    def beside(self, request: Request[Any], response: Any) -> Any:
        """The broker's answer to the rest, with the errors of what was taken out."""
        errors = error_response(request.api_key, request.api_version, self.body, self.error)
        for echo in ECHOES[ApiKey(request.api_key)]:
            _merge(echo, getattr(errors, echo.target), getattr(response, echo.target))
        return response


def take_out(
    request: Request[Any], match: Match, error: ErrorCode, broker: Broker
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


OF_WHOLE_FETCH = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
OF_WHOLE_METADATA = frozenset({ErrorCode.REBOOTSTRAP_REQUIRED})
FIRST_FETCH_WITH_TOPIC_IDS = 13


def marks_answer(request: Request[Any], error: ErrorCode) -> bool:
    """Whether an error goes into the broker's own answer, in place of one of its own."""
    if request.api_key == ApiKey.FETCH:
        return error not in OF_WHOLE_FETCH
    return request.api_key == ApiKey.METADATA and error not in OF_WHOLE_METADATA


def prepare_to_mark(request: Request[Any]) -> None:
    """Have the broker answer at once, and create nothing."""
    body = request.body
    if request.api_key == ApiKey.FETCH:
        body.max_wait_ms = 0
    else:
        body.allow_auto_topic_creation = False


def with_marks(
    request: Request[Any], response: Any, match: Match, error: ErrorCode, broker: Broker
) -> Any:
    """The broker's answer with the error at all that the fault is about.

    Args:
        request: a Fetch or Metadata.
        response: the answer, changed in place.
        match: what the fault is about.
        error: of each.
        broker: knows topics' ids, and fetch sessions.
    """
    if request.api_key == ApiKey.FETCH:
        _mark_fetch(request, response, match, error, broker)
    elif request.api_key == ApiKey.METADATA:
        _mark_metadata(response, match, error)
    return response


def _mark_metadata(response: Any, match: Match, error: ErrorCode) -> None:
    for topic in response.topics:
        if match.topic in (None, topic.name):
            topic.error_code = error
            topic.partitions = []


def _mark_fetch(
    request: Request[Any], response: Any, match: Match, error: ErrorCode, broker: Broker
) -> None:
    if response.error_code:
        return  # the session is none, so there are no partitions to speak of
    by_id = request.api_version >= FIRST_FETCH_WITH_TOPIC_IDS
    for key, index in _requested_partitions(request, response, by_id, broker):
        name = broker.metadata_cache.topic_name(key) if isinstance(key, bytes) else key
        if match.topic in (None, name) and match.partition in (None, index):
            _mark_partition(response, key, index, error)


def _requested_partitions(
    request: Request[Any], response: Any, by_id: bool, broker: Broker
) -> list[tuple[str | bytes, int]]:
    """All partitions that the request is about, in its session and outside."""
    requested: dict[tuple[str | bytes, int], None] = {}
    session_id = response.session_id or request.body.session_id
    for session in broker.fetch_sessions:
        if session.id == session_id:
            requested.update(dict.fromkeys(session.partitions))
    for topic in request.body.topics:
        for partition in topic.partitions:
            requested[(topic.topic_id if by_id else topic.topic, partition.partition)] = None
    return list(requested)


def _mark_partition(response: Any, key: str | bytes, index: int, error: ErrorCode) -> None:
    """Have the answer hold the error for a partition, whether or not it spoke of it."""
    field = "topic_id" if isinstance(key, bytes) else "topic"
    topics = [topic for topic in response.responses if getattr(topic, field) == key]
    if not topics:
        topics = [messages.FetchResponse.FetchableTopicResponse()]
        setattr(topics[0], field, key)
        response.responses.extend(topics)
    marked = messages.FetchResponse.PartitionData(
        partition_index=index, error_code=error, high_watermark=-1, records=b""
    )
    for topic in topics:
        topic.partitions = [
            partition for partition in topic.partitions if partition.partition_index != index
        ]
    topics[0].partitions.append(marked)
