"""DescribeGroups (15), versions 0-6: state and members of groups.

Behaviour: each group for itself. Metadata of the members are given while the group is
stable; a group that is not known is Dead.
Version notes: 3 may ask what the client is allowed to do; 4 names static members; 6 says
GROUP_ID_NOT_FOUND of a group that is not known (KIP-1043).
Departures from Kafka: a group that is named again is answered once.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.describing import DescribedGroup
from ...protocol import messages
from ...runtime.steps import Steps, map_in_steps, map_steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request

FIRST_VERSION_THAT_SAYS_UNKNOWN_GROUP = 6
OPERATIONS_NOT_REQUESTED = -(2**31)
GROUP_OPERATIONS = {
    "READ": 3,
    "DELETE": 6,
    "DESCRIBE": 8,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
}
"""What may be done with a group, and the bit of it (Kafka's AclOperation codes)."""


@in_steps
def handle_describe_groups(
    context: HandlerContext, request: Request[messages.DescribeGroupsRequest]
) -> Steps[messages.DescribeGroupsResponse]:
    """Describe every requested group, once."""
    groups = yield from map_steps(
        lambda group_id: _described(context, request, _describe(context, request, group_id)),
        dict.fromkeys(request.body.groups),
    )
    return messages.DescribeGroupsResponse(groups=groups)


def _describe(
    context: HandlerContext, request: Request[messages.DescribeGroupsRequest], group_id: str
) -> DescribedGroup:
    if not context.authorize(request, "DESCRIBE", "GROUP", group_id):
        return DescribedGroup(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        return context.coordinators.group.describe_group(group_id)
    except KafkaError as refusal:
        return DescribedGroup(group_id, refusal.code)


def _described(
    context: HandlerContext, request: Request[messages.DescribeGroupsRequest], group: DescribedGroup
) -> Steps[messages.DescribeGroupsResponse.DescribedGroup]:
    response = messages.DescribeGroupsResponse
    error, error_message = group.error, None
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        if request.api_version < FIRST_VERSION_THAT_SAYS_UNKNOWN_GROUP:
            error = ErrorCode.NONE
        else:
            error_message = group.error_message
    members = yield from map_in_steps(
        lambda member: response.DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata,
            member_assignment=member.assignment,
        ),
        group.members,
    )
    return response.DescribedGroup(
        error_code=error,
        error_message=error_message,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=members,
        authorized_operations=reported_group_operations(
            context,
            request,
            group.group_id,
            is_requested=request.body.include_authorized_operations and not error,
        ),
    )


def reported_group_operations(
    context: HandlerContext, request: Request[object], group_id: str, *, is_requested: bool
) -> int:
    """A bit for each operation on the group that the client is allowed (KIP-430)."""
    if not is_requested:
        return OPERATIONS_NOT_REQUESTED
    return sum(
        1 << bit
        for operation, bit in GROUP_OPERATIONS.items()
        if context.admission.authorize_reported(request, operation, "GROUP", group_id)
    )


def require_visible_topics(
    context: HandlerContext, request: Request[object], topics: Iterable[str]
) -> Steps[None]:
    """A group is described as a whole or not at all.

    Args:
        context: the handler's.
        request: whose client it is.
        topics: their names; one may be there again, with each of a group's members.

    Raises:
        KafkaError: TOPIC_AUTHORIZATION_FAILED, the client may not describe one of the topics.
    """
    visible = set()
    for topic in topics:
        if topic not in visible and not context.authorize(request, "DESCRIBE", "TOPIC", topic):
            raise KafkaError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "The group has described topic(s) that the client is not authorized to describe.",
            )
        visible.add(topic)
        yield
