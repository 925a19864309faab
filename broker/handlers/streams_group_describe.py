"""StreamsGroupDescribe (89), version 0: topology, members and tasks of streams groups (KIP-1071).

Behaviour: each group for itself, as it was stored last. A group with topics that the client may
not describe is TOPIC_AUTHORIZATION_FAILED as a whole. Once the topology's topics are there, its
internal topics have the numbers of partitions that were decided upon.
Departures from Kafka: a group that is named again is answered once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.streams.streams_groups import (
    DescribedStreamsMember,
    StreamsGroupDescription,
)
from ...coordinator.group.streams.tasks import Tasks, TaskSets
from ...coordinator.group.streams.topology import InternalTopic, Topology
from ...protocol import messages
from ...runtime.steps import Steps, map_in_steps, map_steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request
from .describe_groups import reported_group_operations, require_visible_topics
from .streams_group_heartbeat import check_served


@in_steps
def handle_streams_group_describe(
    context: HandlerContext, request: Request[messages.StreamsGroupDescribeRequest]
) -> Steps[messages.StreamsGroupDescribeResponse]:
    """Describe every requested group, once."""
    groups = yield from map_steps(
        lambda group_id: _described(context, request, group_id),
        dict.fromkeys(request.body.group_ids),
    )
    return messages.StreamsGroupDescribeResponse(groups=groups)


def _describe(
    context: HandlerContext, request: Request[messages.StreamsGroupDescribeRequest], group_id: str
) -> Steps[StreamsGroupDescription]:
    try:
        check_served(context)
        if not context.authorize(request, "DESCRIBE", "GROUP", group_id):
            return StreamsGroupDescription(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = context.coordinators.group.streams.describe(group_id)
        if group.topology is not None:
            sinks = (
                name
                for each in group.topology.subtopologies.values()
                for name in each.repartition_sink_topics
            )
            topics = chain(group.topology.required_topics, sinks)
            yield from require_visible_topics(context, request, topics)
    except KafkaError as refusal:
        return StreamsGroupDescription(group_id, refusal.code, refusal.message)
    return group


def _described(
    context: HandlerContext,
    request: Request[messages.StreamsGroupDescribeRequest],
    group_id: str,
) -> Steps[messages.StreamsGroupDescribeResponse.DescribedGroup]:
    group = yield from _describe(context, request, group_id)
    members = yield from map_in_steps(_member, group.members)
    return messages.StreamsGroupDescribeResponse.DescribedGroup(
        error_code=group.error,
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=None if group.topology is None else _topology(group.topology),
        members=members,
        authorized_operations=reported_group_operations(
            context,
            request,
            group.group_id,
            is_requested=request.body.include_authorized_operations and not group.error,
        ),
    )


def _topology(topology: Topology) -> messages.StreamsGroupDescribeResponse.Topology:
    response = messages.StreamsGroupDescribeResponse
    return response.Topology(
        epoch=topology.epoch,
        subtopologies=[
            response.Subtopology(
                subtopology_id=subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                state_changelog_topics=_topic_infos(each.changelog_topics),
                repartition_source_topics=_topic_infos(each.repartition_source_topics),
            )
            for subtopology_id, each in sorted(topology.subtopologies.items())
        ],
    )


def _topic_infos(
    topics: Iterable[InternalTopic],
) -> list[messages.StreamsGroupDescribeResponse.TopicInfo]:
    response = messages.StreamsGroupDescribeResponse
    return [
        response.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[response.KeyValue(key=name, value=text) for name, text in topic.configs],
        )
        for topic in sorted(topics)
    ]


def _member(described: DescribedStreamsMember) -> messages.StreamsGroupDescribeResponse.Member:
    response = messages.StreamsGroupDescribeResponse
    member = described.member
    endpoint = member.user_endpoint
    return response.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else response.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[response.KeyValue(key=name, value=text) for name, text in member.client_tags],
        assignment=_assignment(member.assigned.without_epochs()),
        target_assignment=_assignment(described.target),
    )


def _assignment(tasks: Tasks) -> messages.StreamsGroupDescribeResponse.Assignment:
    return messages.StreamsGroupDescribeResponse.Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: TaskSets) -> list[messages.StreamsGroupDescribeResponse.TaskIds]:
    return [
        messages.StreamsGroupDescribeResponse.TaskIds(
            subtopology_id=subtopology_id, partitions=sorted(numbers)
        )
        for subtopology_id, numbers in sorted(tasks.items())
    ]
