"""CreatePartitions (37), versions 0-3: give topics more partitions.

Behaviour: each topic succeeds or fails on its own; the answer comes once the new partitions
are led and in the metadata. With `validate_only` nothing is made. A topic that stands twice is
INVALID_REQUEST. A time-out of 0 or less does nothing (REQUEST_TIMED_OUT).
Version notes: 2 is flexible, 3 expects quota errors.
Departures from Kafka: more than 10,000 partitions in one request are POLICY_VIOLATION, as for
CreateTopics; Kafka answers UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...controller.topics.planning import NewPartitions
from ...metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps, count_in_steps, map_in_steps
from ..interbroker.forwarding import on_controller
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.quotas.quota_table import MutationQuota
from ..request.requests import Request

FIRST_VERSION_WITH_STRICT_QUOTAS = 3


@in_task
@on_controller
async def handle_create_partitions(
    context: HandlerContext, request: Request[messages.CreatePartitionsRequest]
) -> messages.CreatePartitionsResponse:
    """Refuse what can be refused here, and have the controller add the rest."""
    body = request.body
    quota = context.quotas.mutation_quota(request, FIRST_VERSION_WITH_STRICT_QUOTAS)
    requested, outcomes = await run_in_steps(_requested(context, request, quota))
    if requested:
        outcomes |= await context.controller.create_partitions(
            requested, timeout_ms=body.timeout_ms, validate_only=body.validate_only
        )
        if not body.validate_only:
            await _wait_until_led(context, requested, outcomes, body.timeout_ms)
    return messages.CreatePartitionsResponse(
        throttle_time_ms=quota.throttle_ms,
        results=await run_in_steps(map_in_steps(_result, outcomes.items())),
    )


def _requested(
    context: HandlerContext,
    request: Request[messages.CreatePartitionsRequest],
    quota: MutationQuota,
) -> Steps[tuple[list[NewPartitions], dict[str, KafkaError | None]]]:
    """What the controller is to do, and what is refused here."""
    requested: list[NewPartitions] = []
    outcomes: dict[str, KafkaError | None] = {}
    occurrences = yield from count_in_steps(topic.name for topic in request.body.topics)
    for topic in request.body.topics:
        yield
        if occurrences[topic.name] > 1:
            outcomes[topic.name] = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif not context.authorize(request, "ALTER", "TOPIC", topic.name):
            outcomes[topic.name] = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            try:
                quota.record(_added(context, topic))
            except KafkaError as refusal:
                outcomes[topic.name] = refusal.as_value()
            else:
                requested.append(_new_partitions(topic))
    return requested, outcomes


def _result(
    named: tuple[str, KafkaError | None],
) -> messages.CreatePartitionsResponse.CreatePartitionsTopicResult:
    name, outcome = named
    return messages.CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=name,
        error_code=outcome.code if outcome else ErrorCode.NONE,
        error_message=outcome.message if outcome else None,
    )


def _added(
    context: HandlerContext, topic: messages.CreatePartitionsRequest.CreatePartitionsTopic
) -> int:
    """How many partitions a topic gets; 0 where that will be refused."""
    present = context.metadata_cache.snapshot.partition_states.get(topic.name)
    return 0 if present is None else max(topic.count - len(present), 0)


async def _wait_until_led(
    context: HandlerContext,
    requested: list[NewPartitions],
    outcomes: dict[str, KafkaError | None],
    timeout_ms: int,
) -> None:
    """Those that are not led in time are REQUEST_TIMED_OUT, though they were made."""
    made = [(each.topic, each.total_count) for each in requested if outcomes[each.topic] is None]
    if await wait_for_metadata(context.metadata_cache, partitions_are_led(made), timeout_ms):
        return
    for topic, count in made:
        if not partitions_are_led([(topic, count)])(context.metadata_cache.snapshot):
            outcomes[topic] = KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def _new_partitions(topic: messages.CreatePartitionsRequest.CreatePartitionsTopic) -> NewPartitions:
    assignments = topic.assignments
    return NewPartitions(
        topic.name,
        topic.count,
        None if assignments is None else [assigned.broker_ids for assigned in assignments],
    )
