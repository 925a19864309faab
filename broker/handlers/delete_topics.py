"""DeleteTopics (20), versions 1-6: remove topics with all their records.

Behaviour: each topic succeeds or fails on its own; the answer comes once the topics are out of
the metadata and their logs are gone from this broker. With `delete.topic.enable=false` nothing
is deleted: TOPIC_DELETION_DISABLED, before version 3 INVALID_REQUEST. A name or id that stands
twice, and a name beside its own id, are INVALID_REQUEST. A time-out of 0 or less does nothing
(REQUEST_TIMED_OUT).
Version notes: 5 answers messages; 6 takes ids beside names.
Departures from Kafka: results keep the order of the request, where Kafka shuffles them.
"""

from __future__ import annotations

from collections import Counter

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import ZERO_UUID
from ...metadata.metadata_waiting import topics_are_gone, wait_for_metadata
from ...protocol import messages
from ..interbroker.forwarding import on_controller
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

VERSION_OF_DELETION_DISABLED = 3
FIRST_VERSION_BY_TOPIC_ID = 6

NameAndId = tuple[str | None, bytes]
"""A topic as a request names it: its name, or null and its id."""


@in_task
@on_controller
async def handle_delete_topics(
    context: HandlerContext, request: Request[messages.DeleteTopicsRequest]
) -> messages.DeleteTopicsResponse:
    """Find out which topics are meant, and have the controller delete them."""
    body = request.body
    if not context.config["delete.topic.enable"]:
        if request.api_version < VERSION_OF_DELETION_DISABLED:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This cluster deletes no topics.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    requested: list[NameAndId]
    if request.api_version < FIRST_VERSION_BY_TOPIC_ID:
        requested = [(name, ZERO_UUID) for name in body.topic_names]
    else:
        requested = [(topic.name, topic.topic_id) for topic in body.topics]
    response = messages.DeleteTopicsResponse
    results: list[messages.DeleteTopicsResponse.DeletableTopicResult] = []
    meant: dict[bytes, str] = {}
    # Ids first, so that of a topic named both ways it is the name that is refused.
    for (name, topic_id), occurrences in sorted(Counter(requested).items(), key=_is_named):
        try:
            found_name, found_id = _find(context, request, name, topic_id, occurrences)
            if found_id in meant:
                del meant[found_id]
                topic_id = found_id
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "The request gives this topic's name and its id."
                )
            meant[found_id] = found_name
        except KafkaError as refusal:
            results.append(
                response.DeletableTopicResult(
                    name=name,
                    topic_id=topic_id,
                    error_code=refusal.code,
                    error_message=refusal.message,
                )
            )
    if meant:
        outcomes = await context.controller.delete_topics(list(meant), timeout_ms=body.timeout_ms)
        gone = [meant[topic_id] for topic_id, outcome in outcomes.items() if outcome is None]
        await wait_for_metadata(context.metadata_cache, topics_are_gone(gone), body.timeout_ms)
        for topic_id, outcome in outcomes.items():
            results.append(
                response.DeletableTopicResult(
                    name=meant[topic_id],
                    topic_id=topic_id,
                    error_code=outcome.code if outcome else ErrorCode.NONE,
                    error_message=outcome.message if outcome else None,
                )
            )
    return response(responses=results)


def _is_named(counted: tuple[NameAndId, int]) -> bool:
    return counted[0][0] is not None


def _find(
    context: HandlerContext,
    request: Request[messages.DeleteTopicsRequest],
    name: str | None,
    topic_id: bytes,
    occurrences: int,
) -> tuple[str, bytes]:
    """The name and id of a topic that the client may delete.

    Raises:
        KafkaError: there is none, or the request does not say clearly which one.
    """
    if name is None and topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic is named by neither name nor id.")
    if name is not None and topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic is named by its name and an id.")
    if occurrences > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The request names this topic twice.")
    topics = context.controller.active.context
    topic = topics.topic_by_id(topic_id) if name is None else topics.topic(name)
    if name is not None and not context.authorize(request, "DESCRIBE", "TOPIC", name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic of this id.")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
    if not context.authorize(request, "DELETE", "TOPIC", topic.name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return topic.name, topic.topic_id
