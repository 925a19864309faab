"""ShareGroupDescribe (77), version 1: epochs, members and assignments of share groups (KIP-932).

Behaviour: each group for itself, as it was stored last. A group with topics that the client may
not describe is TOPIC_AUTHORIZATION_FAILED as a whole.
Departures from Kafka: a group that is named again is answered once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.share.share_groups import DescribedShareMember, ShareGroupDescription
from ...protocol import messages
from ...runtime.steps import Steps, map_steps, sorted_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request
from .describe_groups import reported_group_operations, require_visible_topics
from .share_group_heartbeat import check_served

ASSIGNOR_NAME = "simple"


@in_steps
def handle_share_group_describe(
    context: HandlerContext, request: Request[messages.ShareGroupDescribeRequest]
) -> Steps[messages.ShareGroupDescribeResponse]:
    """Describe every requested group, once."""
    groups = yield from map_steps(
        lambda group_id: _described(context, request, group_id),
        dict.fromkeys(request.body.group_ids),
    )
    return messages.ShareGroupDescribeResponse(groups=groups)


def _describe(
    context: HandlerContext, request: Request[messages.ShareGroupDescribeRequest], group_id: str
) -> Steps[ShareGroupDescription]:
    try:
        check_served(context)
        if not context.authorize(request, "DESCRIBE", "GROUP", group_id):
            return ShareGroupDescription(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = context.coordinators.group.share.describe(group_id)
        yield from require_visible_topics(context, request, _topics(group))
    except KafkaError as refusal:
        return ShareGroupDescription(group_id, refusal.code, refusal.message)
    return group


def _topics(group: ShareGroupDescription) -> Iterator[str]:
    """Those that its members read, or have subscribed to."""
    for described in group.members:
        for entry in described.assignment:
            yield entry.topic_name
        yield from described.member.subscribed_topic_names


def _described(
    context: HandlerContext,
    request: Request[messages.ShareGroupDescribeRequest],
    group_id: str,
) -> Steps[messages.ShareGroupDescribeResponse.DescribedGroup]:
    group = yield from _describe(context, request, group_id)
    members = yield from map_steps(_member, group.members)
    return messages.ShareGroupDescribeResponse.DescribedGroup(
        error_code=group.error,
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name="" if group.error else ASSIGNOR_NAME,
        members=members,
        authorized_operations=reported_group_operations(
            context,
            request,
            group.group_id,
            is_requested=request.body.include_authorized_operations and not group.error,
        ),
    )


def _member(described: DescribedShareMember) -> Steps[messages.ShareGroupDescribeResponse.Member]:
    response = messages.ShareGroupDescribeResponse
    member = described.member
    names = yield from sorted_in_steps(tuple(member.subscribed_topic_names))
    return response.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=names,
        assignment=response.Assignment(
            topic_partitions=[
                response.TopicPartitions(
                    topic_id=entry.topic_id,
                    topic_name=entry.topic_name,
                    partitions=list(entry.partitions),
                )
                for entry in described.assignment
            ]
        ),
    )
