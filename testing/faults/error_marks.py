"""Errors of single topics and partitions within an answer that is else the broker's own.

A Fetch goes on with a session and a Metadata tells of the whole cluster: an answer that held
nothing but errors would tell a client more than the error that it was meant to see. So the broker
handles these, which changes nothing, and the error takes the place of what it found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...common.errors import ErrorCode
from ...protocol import messages
from ...protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.requests import Request
    from .matcher import Match

OF_WHOLE_FETCH = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
OF_WHOLE_METADATA = frozenset({ErrorCode.REBOOTSTRAP_REQUIRED})
FIRST_FETCH_WITH_TOPIC_IDS = 13


def marks_answer(request: Request, error: ErrorCode) -> bool:
    """Whether an error goes into the broker's own answer, in place of one of its own."""
    if request.api_key == ApiKey.FETCH:
        return error not in OF_WHOLE_FETCH
    return request.api_key == ApiKey.METADATA and error not in OF_WHOLE_METADATA


def prepare_to_mark(request: Request) -> None:
    """Have the broker answer at once, and create nothing."""
    body = request.body
    if request.api_key == ApiKey.FETCH:
        body.max_wait_ms = 0
    else:
        body.allow_auto_topic_creation = False


def with_marks(
    request: Request, response: Any, match: Match, error: ErrorCode, broker: Broker
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
    request: Request, response: Any, match: Match, error: ErrorCode, broker: Broker
) -> None:
    if response.error_code:
        return  # the session is none, so there are no partitions to speak of
    by_id = request.api_version >= FIRST_FETCH_WITH_TOPIC_IDS
    for key, index in _asked(request, response, by_id, broker):
        name = broker.metadata_cache.topic_name(key) if isinstance(key, bytes) else key
        if match.topic in (None, name) and match.partition in (None, index):
            _mark_partition(response, key, index, error)


def _asked(
    request: Request, response: Any, by_id: bool, broker: Broker
) -> list[tuple[str | bytes, int]]:
    """All partitions that the request is about, in its session and outside."""
    asked: dict[tuple[str | bytes, int], None] = {}
    session_id = response.session_id or request.body.session_id
    for session in broker.fetch_sessions:
        if session.id == session_id:
            asked.update(dict.fromkeys(session.partitions))
    for topic in request.body.topics:
        for partition in topic.partitions:
            asked[(topic.topic_id if by_id else topic.topic, partition.partition)] = None
    return list(asked)


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
