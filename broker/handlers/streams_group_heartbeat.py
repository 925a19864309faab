"""StreamsGroupHeartbeat (88), version 0: membership in a streams group (KIP-1071).

Behaviour: a member joins with its topology, stays, says which tasks it has, or leaves; the answer
tells its epoch, what stands in the way of its tasks and, where that changed, which they are. An
answer that tells of a change comes when that is stored. Internal topics that are missing are made
meanwhile, if the client may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import INTERNAL_TOPICS
from ...controller.topics.planning import USE_DEFAULT, TopicCreation
from ...controller.topics.topic_names import topic_name_problem
from ...coordinator.group.streams.configured_topology import Status, StatusCode
from ...coordinator.group.streams.heartbeat import (
    EndpointPartitions,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
)
from ...coordinator.group.streams.member import UserEndpoint
from ...coordinator.group.streams.tasks import TaskSets, task_sets
from ...coordinator.group.streams.topology import InternalTopic, read_topology
from ...metadata.features import STREAMS_VERSION
from ...protocol import messages
from ...runtime.steps import Steps, sorted_in_steps
from ..interbroker.forwarding import create_beside, create_topics_for
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

STREAMS_VERSION_WITH_STREAMS_GROUPS = 1
FAILURES_SHOWN_MAX = 3
HeartbeatRequest = Request[messages.StreamsGroupHeartbeatRequest]


@in_steps
def handle_streams_group_heartbeat(
    context: HandlerContext, request: HeartbeatRequest
) -> Steps[messages.StreamsGroupHeartbeatResponse | Parked]:
    """Take the heartbeat up; refusals are answered at once."""
    body = request.body

    def respond(answer: StreamsHeartbeatAnswer) -> None:
        if answer.missing_topics or answer.creation_failures:
            answer = _with_topics_made(context, request, answer)
        request.answer(_response(answer))

    try:
        check_served(context)
        if not context.authorize(request, "READ", "GROUP", body.group_id):
            return _response(StreamsHeartbeatAnswer(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        topology = None
        if body.topology is not None:
            yield from _check_topics(context, request, body.topology)
            topology = yield from read_topology(body.topology)
        tags = yield from _tags(body.client_tags)
        endpoint = body.user_endpoint
        active = yield from _tasks(body.active_tasks)
        standby = yield from _tasks(body.standby_tasks)
        warmup = yield from _tasks(body.warmup_tasks)
        yield from context.coordinators.group.streams.heartbeat(
            StreamsHeartbeat(
                body.group_id,
                body.member_id,
                body.member_epoch,
                body.endpoint_information_epoch,
                body.instance_id,
                body.rack_id,
                body.rebalance_timeout_ms,
                topology,
                active,
                standby,
                warmup,
                body.process_id,
                None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
                tags,
                body.task_offsets is not None or body.task_end_offsets is not None,
                body.shutdown_application,
                request.client_id,
                f"/{request.connection.peer_host}",  # Java's way to write an address
            ),
            respond,
        )
    except KafkaError as refusal:
        message = refusal.message
        if refusal.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            message = None  # as Kafka has it
        return _response(StreamsHeartbeatAnswer(refusal.code, message))
    return PARKED


def check_served(context: HandlerContext) -> None:
    """Refuse where streams groups are switched off, by setting or by feature.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    if (
        not context.coordinators.group.streams.is_enabled
        or context.features.finalized(STREAMS_VERSION) < STREAMS_VERSION_WITH_STREAMS_GROUPS
    ):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _check_topics(
    context: HandlerContext,
    request: HeartbeatRequest,
    topology: messages.StreamsGroupHeartbeatRequest.Topology,
) -> Steps[None]:
    """Refuse a topology with topics that nobody may have, or this client may not see."""
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        infos = (*each.repartition_source_topics, *each.state_changelog_topics)
        for name in chain(
            each.source_topics, each.repartition_sink_topics, (info.name for info in infos)
        ):
            yield
            names[name] = None
    internal, invalid = [], []
    for name in names:
        yield
        if name in INTERNAL_TOPICS:
            internal.append(name)
        if topic_name_problem(name) is not None:
            invalid.append(name)
    if internal:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is "
            "prohibited.",
        )
    if invalid:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Topic names {','.join(invalid)} are not valid topic names.",
        )
    if not (yield from context.admission.may_describe_all(request, names)):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _tasks(
    reported: Sequence[messages.StreamsGroupHeartbeatRequest.TaskIds] | None,
) -> Steps[TaskSets | None]:
    if reported is None:
        return None
    tasks: dict[str, set[int]] = {}
    for each in reported:  # which may name a subtopology more than once
        yield
        tasks.setdefault(each.subtopology_id, set()).update(each.partitions)
    return task_sets(tasks)


def _tags(
    reported: Sequence[messages.StreamsGroupHeartbeatRequest.KeyValue] | None,
) -> Steps[tuple[tuple[str, str], ...] | None]:
    if reported is None:
        return None
    tags: dict[str, str] = {}
    for each in reported:
        yield
        tags[each.key] = each.value
    return tuple((yield from sorted_in_steps(tuple(tags.items()))))


# -- internal topics ------------------------------------------------------------------------


def _with_topics_made(
    context: HandlerContext, request: HeartbeatRequest, answer: StreamsHeartbeatAnswer
) -> StreamsHeartbeatAnswer:
    """Have missing topics made, beside; the answer tells of those that cannot be."""
    missing = answer.missing_topics
    if not context.admission.is_allowed(request, "CREATE", "CLUSTER", CLUSTER_NAME):
        refused = [
            topic.name
            for topic in missing
            if not context.authorize(request, "CREATE", "TOPIC", topic.name)
        ]
        if refused:
            return _with_detail(answer, f"; Unauthorized to CREATE on topics {', '.join(refused)}.")
    _make_topics(context, request, missing)
    failures = answer.creation_failures
    if not failures:
        return answer
    shown = ", ".join(f"{name} ({reason})" for name, reason in failures[:FAILURES_SHOWN_MAX])
    if len(failures) > FAILURES_SHOWN_MAX:
        shown += f" and {len(failures) - FAILURES_SHOWN_MAX} more"
    return _with_detail(answer, f"; Creation failed: {shown}.")


def _with_detail(answer: StreamsHeartbeatAnswer, detail: str) -> StreamsHeartbeatAnswer:
    """The answer, with more to say of missing topics."""
    return answer._replace(
        statuses=tuple(
            Status(status.code, status.detail + detail)
            if status.code is StatusCode.MISSING_INTERNAL_TOPICS
            else status
            for status in answer.statuses
        )
    )


def _make_topics(
    context: HandlerContext, request: HeartbeatRequest, topics: Sequence[InternalTopic]
) -> None:
    creations = {
        topic.name: TopicCreation(
            topic.name,
            topic.partitions,
            topic.replication_factor or USE_DEFAULT,
            configs=topic.configs,
        )
        for topic in topics
    }

    async def create(names: Sequence[str]) -> Mapping[str, KafkaError]:
        return await create_topics_for(context, request, [creations[name] for name in names])

    def note(refused: Mapping[str, KafkaError]) -> None:
        context.coordinators.group.streams.note_creation_failures(
            request.body.group_id,
            {name: why.message or why.code.name for name, why in refused.items()},
        )

    create_beside(context, creations, create, note)


# -- the answer -----------------------------------------------------------------------------


def _response(answer: StreamsHeartbeatAnswer) -> messages.StreamsGroupHeartbeatResponse:
    response = messages.StreamsGroupHeartbeatResponse
    assigned = None if answer.assigned is None else answer.assigned.without_epochs()
    return response(
        error_code=answer.error,
        error_message=answer.error_message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        status=[
            response.Status(status_code=status.code, status_detail=status.detail)
            for status in answer.statuses
        ],
        active_tasks=None if assigned is None else _task_ids(assigned.active),
        standby_tasks=None if assigned is None else _task_ids(assigned.standby),
        warmup_tasks=None if assigned is None else _task_ids(assigned.warmup),
        endpoint_information_epoch=answer.endpoint_epoch,
        partitions_by_user_endpoint=None
        if answer.endpoints is None
        else [_endpoint(each) for each in answer.endpoints],
    )


def _task_ids(tasks: TaskSets) -> list[messages.StreamsGroupHeartbeatResponse.TaskIds]:
    return [
        messages.StreamsGroupHeartbeatResponse.TaskIds(
            subtopology_id=subtopology_id, partitions=sorted(numbers)
        )
        for subtopology_id, numbers in sorted(tasks.items())
    ]


def _endpoint(
    each: EndpointPartitions,
) -> messages.StreamsGroupHeartbeatResponse.EndpointToPartitions:
    response = messages.StreamsGroupHeartbeatResponse
    return response.EndpointToPartitions(
        user_endpoint=response.Endpoint(host=each.endpoint.host, port=each.endpoint.port),
        active_partitions=_topic_partitions(each.active),
        standby_partitions=_topic_partitions(each.standby),
    )


def _topic_partitions(
    topics: Iterable[tuple[str, Iterable[int]]],
) -> list[messages.StreamsGroupHeartbeatResponse.TopicPartition]:
    return [
        messages.StreamsGroupHeartbeatResponse.TopicPartition(topic=name, partitions=list(numbers))
        for name, numbers in topics
    ]
