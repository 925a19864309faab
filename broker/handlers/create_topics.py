"""CreateTopics (19), versions 2-7: make topics.

Behaviour: each topic succeeds or fails on its own; the answer comes once the partitions made
are led and in the metadata, or with REQUEST_TIMED_OUT. Any broker takes it; the controller
does it. With `validate_only` nothing is made. A name that stands twice in
the request is INVALID_REQUEST, once. More than 10,000 partitions in one request are
POLICY_VIOLATION; with a time-out of 0 or less nothing is done (REQUEST_TIMED_OUT).
Version notes: 4 takes -1 for the broker's default partition count and replication factor
(older ones have no such value); 5 answers partition count, replication factor and settings;
7 the topic id.
Departures from Kafka: the time-out bounds the wait for operations before this one; what has
begun is finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...common.errors import ErrorCode, KafkaError
from ...config.describe import describe_topic
from ...controller.topics.planning import TopicCreation, TopicPlan
from ...controller.topics.topic_names import CLUSTER_METADATA
from ...metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps, count_in_steps
from ..interbroker.forwarding import on_controller
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.quotas.quota_table import MutationQuota
from ..request.requests import Request

FIRST_VERSION_WITH_STRICT_QUOTAS = 6


@in_task
@on_controller
async def handle_create_topics(
    context: HandlerContext, request: Request[messages.CreateTopicsRequest]
) -> messages.CreateTopicsResponse:
    """Refuse what can be refused here, and have the controller make the rest."""
    body = request.body
    quota = context.quotas.mutation_quota(request, FIRST_VERSION_WITH_STRICT_QUOTAS)
    new_topics, refused = await run_in_steps(_requested(context, request, quota))
    made: list[TopicPlan] = []
    began_ms = context.clock.monotonic_ms()
    if new_topics:
        for created in await context.controller.create_topics(
            new_topics, timeout_ms=body.timeout_ms, validate_only=body.validate_only
        ):
            if created.plan is None:
                assert created.error is not None
                refused[created.name] = created.error
            else:
                made.append(created.plan)
    if not body.validate_only:
        left_ms = body.timeout_ms - (context.clock.monotonic_ms() - began_ms)
        counts = [(plan.name, len(plan.assignment)) for plan in made]
        if not await wait_for_metadata(context.metadata_cache, partitions_are_led(counts), left_ms):
            refused |= {
                plan.name: KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"Topic {plan.name!r} was made; not all of its partitions have a leader yet.",
                )
                for plan in made
                if not partitions_are_led([(plan.name, len(plan.assignment))])(
                    context.metadata_cache.snapshot
                )
            }
    answer = await run_in_steps(_response(context, request, made, refused))
    answer.throttle_time_ms = quota.throttle_ms
    return answer


def _requested(
    context: HandlerContext, request: Request[messages.CreateTopicsRequest], quota: MutationQuota
) -> Steps[tuple[list[TopicCreation], dict[str, KafkaError]]]:
    """What the controller is to make, and what is refused here."""
    new_topics: list[TopicCreation] = []
    refused: dict[str, KafkaError] = {}
    occurrences = yield from count_in_steps(topic.name for topic in request.body.topics)
    for topic in request.body.topics:
        yield
        refusal = _refusal(context, request, topic.name, occurrences[topic.name])
        if refusal is None:
            refusal = _above_quota(context, quota, topic)
        if refusal is None:
            new_topics.append(_new_topic(topic))
        else:
            refused[topic.name] = refusal
    return new_topics, refused


def _response(
    context: HandlerContext,
    request: Request[messages.CreateTopicsRequest],
    made: Sequence[TopicPlan],
    refused: Mapping[str, KafkaError],
) -> Steps[messages.CreateTopicsResponse]:
    answer = messages.CreateTopicsResponse()
    for plan in made:
        yield
        if plan.name not in refused:
            result = yield from _made(context, request, plan)
            answer.topics.append(result)
    for name, refusal in refused.items():
        yield
        answer.topics.append(
            messages.CreateTopicsResponse.CreatableTopicResult(
                name=name, error_code=refusal.code, error_message=refusal.message
            )
        )
    return answer


def _above_quota(
    context: HandlerContext,
    quota: MutationQuota,
    topic: messages.CreateTopicsRequest.CreatableTopic,
) -> KafkaError | None:
    """Count a topic's partitions, unless it is there already; why they may not be made now."""
    if topic.name in context.metadata_cache.snapshot.partition_states:
        return None
    count = len(topic.assignments) or topic.num_partitions
    try:
        quota.record(count if count >= 0 else context.config["num.partitions"])
    except KafkaError as refusal:
        return refusal.as_value()
    return None


def _refusal(
    context: HandlerContext,
    request: Request[messages.CreateTopicsRequest],
    name: str,
    occurrences: int,
) -> KafkaError | None:
    if occurrences > 1:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name == CLUSTER_METADATA:
        return KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
        )
    if not (
        context.admission.is_allowed(request, "CREATE", "CLUSTER", CLUSTER_NAME)
        or context.authorize(request, "CREATE", "TOPIC", name)
    ):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    return None


def _new_topic(topic: messages.CreateTopicsRequest.CreatableTopic) -> TopicCreation:
    return TopicCreation(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assigned.partition_index, assigned.broker_ids) for assigned in topic.assignments],
        [(config.name, config.value) for config in topic.configs],
    )


def _made(
    context: HandlerContext, request: Request[messages.CreateTopicsRequest], plan: TopicPlan
) -> Steps[messages.CreateTopicsResponse.CreatableTopicResult]:
    response = messages.CreateTopicsResponse
    result = response.CreatableTopicResult(name=plan.name, topic_id=plan.topic_id)
    if not context.admission.is_allowed(request, "DESCRIBE_CONFIGS", "TOPIC", plan.name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return result
    result.num_partitions = len(plan.assignment)
    result.replication_factor = plan.replication_factor
    result.configs = configs = []
    for entry in sorted(describe_topic(context.config, plan.config)):
        configs.append(
            response.CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
        )
        yield
    return result
