"""ConsumerGroupDescribe (69), versions 0-1: epochs, members and assignments of consumer groups.

Behaviour: each group for itself, as it was stored last. A group with topics that the client
may not describe is TOPIC_AUTHORIZATION_FAILED as a whole.
Version notes: 1 tells which protocol each member speaks (KIP-1099).
Departures from Kafka: a group that is named again is answered once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.describing import (
    ConsumerGroupDescription,
    DescribedConsumer,
    DescribedPartitions,
)
from ...protocol import messages
from ...runtime.steps import Steps, map_steps, sorted_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request
from .consumer_group_heartbeat import check_served
from .describe_groups import reported_group_operations, require_visible_topics


@in_steps
def handle_consumer_group_describe(
    context: HandlerContext, request: Request[messages.ConsumerGroupDescribeRequest]
) -> Steps[messages.ConsumerGroupDescribeResponse]:
    """Describe every requested group, once."""
    groups = yield from map_steps(
        lambda group_id: _described(context, request, group_id),
        dict.fromkeys(request.body.group_ids),
    )
    return messages.ConsumerGroupDescribeResponse(groups=groups)


def _describe(
    context: HandlerContext, request: Request[messages.ConsumerGroupDescribeRequest], group_id: str
) -> Steps[ConsumerGroupDescription]:
    try:
        check_served(context)
        if not context.authorize(request, "DESCRIBE", "GROUP", group_id):
            return ConsumerGroupDescription(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        group = context.coordinators.group.describe_consumer_group(group_id)
        yield from require_visible_topics(context, request, _topics(group))
    except KafkaError as refusal:
        return ConsumerGroupDescription(group_id, refusal.code, refusal.message)
    return group


def _topics(group: ConsumerGroupDescription) -> Iterator[str]:
    """Those that its members read, are to read, or have subscribed to."""
    for described in group.members:
        for entry in (*described.assignment, *described.target):
            yield entry.topic_name
        yield from described.member.subscribed_topic_names


def _described(
    context: HandlerContext,
    request: Request[messages.ConsumerGroupDescribeRequest],
    group_id: str,
) -> Steps[messages.ConsumerGroupDescribeResponse.DescribedGroup]:
    group = yield from _describe(context, request, group_id)
    members = yield from map_steps(_member, group.members)
    return messages.ConsumerGroupDescribeResponse.DescribedGroup(
        error_code=group.error,
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
        members=members,
        authorized_operations=reported_group_operations(
            context,
            request,
            group.group_id,
            is_requested=request.body.include_authorized_operations and not group.error,
        ),
    )


def _member(described: DescribedConsumer) -> Steps[messages.ConsumerGroupDescribeResponse.Member]:
    member = described.member
    names = yield from sorted_in_steps(tuple(member.subscribed_topic_names))
    return messages.ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=names,
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(described.assignment),
        target_assignment=_assignment(described.target),
        member_type=described.member_type,
    )


def _assignment(
    partitions: Sequence[DescribedPartitions],
) -> messages.ConsumerGroupDescribeResponse.Assignment:
    response = messages.ConsumerGroupDescribeResponse
    return response.Assignment(
        topic_partitions=[
            response.TopicPartitions(
                topic_id=entry.topic_id,
                topic_name=entry.topic_name,
                partitions=list(entry.partitions),
            )
            for entry in partitions
        ]
    )
