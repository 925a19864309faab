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

from collections.abc import Iterable, Iterator, Mapping

from ...common.error_texts import default_error
from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import ZERO_UUID
from ...metadata.metadata_waiting import topics_are_gone, wait_for_metadata
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps, clear_in_steps, count_in_steps
from ..interbroker.forwarding import on_controller
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.quotas.quota_table import MutationQuota
from ..request.requests import Request

VERSION_OF_DELETION_DISABLED = 3
FIRST_VERSION_BY_TOPIC_ID = 6
FIRST_VERSION_WITH_STRICT_QUOTAS = 5

FoundTopic = tuple[str, bytes]
"""A topic's name and its id."""

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
            text = "This version does not support topic deletion."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        raise default_error(ErrorCode.TOPIC_DELETION_DISABLED)
    quota = context.quotas.mutation_quota(request, FIRST_VERSION_WITH_STRICT_QUOTAS)
    named = _named(body, request.api_version)
    meant, results = await run_in_steps(_meant(context, request, named))
    results += await run_in_steps(_above_quota(context, quota, meant))
    if meant:
        outcomes = await context.controller.delete_topics(list(meant), timeout_ms=body.timeout_ms)
        gone = [meant[topic_id] for topic_id, outcome in outcomes.items() if outcome is None]
        await wait_for_metadata(context.metadata_cache, topics_are_gone(gone), body.timeout_ms)
        results += await run_in_steps(_outcomes(meant, outcomes))
    return messages.DeleteTopicsResponse(throttle_time_ms=quota.throttle_ms, responses=results)


def _named(body: messages.DeleteTopicsRequest, version: int) -> Iterator[NameAndId]:
    if version < FIRST_VERSION_BY_TOPIC_ID:
        return ((name, ZERO_UUID) for name in body.topic_names)
    return ((topic.name, topic.topic_id) for topic in body.topics)


def _outcomes(
    meant: Mapping[bytes, str], outcomes: Mapping[bytes, KafkaError | None]
) -> Steps[list[messages.DeleteTopicsResponse.DeletableTopicResult]]:
    results = []
    for topic_id, outcome in outcomes.items():
        results.append(
            messages.DeleteTopicsResponse.DeletableTopicResult(
                name=meant[topic_id],
                topic_id=topic_id,
                error_code=outcome.code if outcome else ErrorCode.NONE,
                error_message=outcome.message if outcome else None,
            )
        )
        yield
    return results


def _above_quota(
    context: HandlerContext, quota: MutationQuota, meant: dict[bytes, str]
) -> Steps[list[messages.DeleteTopicsResponse.DeletableTopicResult]]:
    """Count the partitions of topics to delete, and take out those that may not be deleted now."""
    states = context.metadata_cache.snapshot.partition_states
    refused: dict[bytes, KafkaError] = {}
    for topic_id, name in meant.items():
        yield
        try:
            quota.record(len(states.get(name, ())))
        except KafkaError as refusal:
            refused[topic_id] = refusal.as_value()
    results = yield from _outcomes(meant, refused)
    for topic_id in refused:
        del meant[topic_id]
    return results


def _meant(
    context: HandlerContext,
    request: Request[messages.DeleteTopicsRequest],
    named: Iterable[NameAndId],
) -> Steps[tuple[dict[bytes, str], list[messages.DeleteTopicsResponse.DeletableTopicResult]]]:
    """Ids and names of the topics to delete, and the results of those that are refused."""
    response = messages.DeleteTopicsResponse
    results: list[messages.DeleteTopicsResponse.DeletableTopicResult] = []
    meant: dict[bytes, str] = {}
    may_delete_all = context.admission.is_allowed(request, "DELETE", "CLUSTER", CLUSTER_NAME)
    counts = yield from count_in_steps(named)
    for by_name in (False, True):
        # Ids first, so that of a topic named both ways it is the name that is refused.
        for (name, topic_id), occurrences in counts.items():
            yield
            if by_name is (name is None):
                continue
            try:
                found = _find(context, name, topic_id, occurrences)
                known_name = name if found is None else found[0]
                if known_name is not None and not may_delete_all:
                    may_describe = context.authorize(request, "DESCRIBE", "TOPIC", known_name)
                    may_delete = context.authorize(request, "DELETE", "TOPIC", known_name)
                    if (name and not may_describe) or (found and not may_delete):
                        name = known_name if may_describe else name
                        raise default_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                found_name, found_id = _existing(found, name)
                if found_id in meant:
                    del meant[found_id]
                    topic_id = found_id
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST,
                        "The provided topic name maps to an ID that was already supplied.",
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
    yield from clear_in_steps(counts)
    return meant, results


def _find(
    context: HandlerContext, name: str | None, topic_id: bytes, occurrences: int
) -> FoundTopic | None:
    """The name and id of a topic; None where there is none.

    Raises:
        KafkaError: the request does not say clearly which one.
    """
    if name is None and topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != ZERO_UUID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if occurrences > 1:
        text = "Duplicate topic id." if name is None else "Duplicate topic name."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    topics = context.controller.active.context
    topic = topics.topic_by_id(topic_id) if name is None else topics.topic(name)
    return None if topic is None else (topic.name, topic.topic_id)


def _existing(found: FoundTopic | None, name: str | None) -> FoundTopic:
    """The topic that was found. Raises KafkaError: there was none."""
    if found is not None:
        return found
    if name is None:
        raise default_error(ErrorCode.UNKNOWN_TOPIC_ID)
    raise default_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
