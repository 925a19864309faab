"""LeaveGroup (13), versions 0-5: members leave, so that nobody waits for their sessions to end.

Behaviour: each member named is taken out or gets an error of its own; the others
rebalance. A static member may be named by its instance alone, which is how an
administrator removes it.
Version notes: before 3 there is one member and its error is the response's; 3 takes
several (KIP-345); 5 gives reasons (KIP-800).
Departures from Kafka: none known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.classic.messages import LeavingMember
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked
from ..request.requests import Request

FIRST_VERSION_WITH_SEVERAL_MEMBERS = 3
OF_MEMBERS = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
"""What a coordinator says of single members; anything else befell the whole request."""


def handle_leave_group(
    context: HandlerContext, request: Request[messages.LeaveGroupRequest]
) -> Parked:
    """Take the members out; the answer comes when that is stored, where it has to be."""
    body = request.body
    if not context.authorize(request, "READ", "GROUP", body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.api_version < FIRST_VERSION_WITH_SEVERAL_MEMBERS:
        leaving = [LeavingMember(body.member_id)]
    else:
        leaving = [
            LeavingMember(member.member_id, member.group_instance_id, member.reason)
            for member in body.members
        ]

    def respond(errors: Sequence[ErrorCode]) -> None:
        request.answer(_response(request, leaving, errors))

    context.coordinators.group.leave_group(body.group_id, leaving, respond)
    return PARKED


def _response(
    request: Request[messages.LeaveGroupRequest],
    leaving: Sequence[LeavingMember],
    errors: Sequence[ErrorCode],
) -> messages.LeaveGroupResponse:
    response = messages.LeaveGroupResponse
    if request.api_version < FIRST_VERSION_WITH_SEVERAL_MEMBERS:
        return response(error_code=errors[0])
    of_group = next((error for error in errors if error not in OF_MEMBERS), None)
    if of_group is not None:
        return response(error_code=of_group)
    return response(
        members=[
            response.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error,
            )
            for member, error in zip(leaving, errors, strict=True)
        ]
    )
