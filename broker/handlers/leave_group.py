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
from functools import partial
from itertools import chain

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.classic.messages import LeavingMember
from ...protocol import messages
from ...runtime.steps import Steps, count_items, in_batches, map_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

FIRST_VERSION_WITH_SEVERAL_MEMBERS = 3
MEMBERS_PER_PIECE = 200
"""So many leave at a time: some hundred microseconds of work."""
OF_MEMBERS = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
"""What a coordinator says of single members; anything else befell the whole request."""


@in_steps
def handle_leave_group(
    context: HandlerContext, request: Request[messages.LeaveGroupRequest]
) -> Steps[messages.LeaveGroupResponse | Parked]:
    """Take the members out; the answer comes when that is stored, where it has to be."""
    body = request.body
    if not context.authorize(request, "READ", "GROUP", body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.api_version < FIRST_VERSION_WITH_SEVERAL_MEMBERS:
        leaving = [LeavingMember(body.member_id)]
    else:
        leaving = yield from map_in_steps(_leaving, body.members)
    # Thousands leave as if by several requests: each ends with whatever it means to the group.
    pieces = list(in_batches(leaving, MEMBERS_PER_PIECE)) or [[]]
    errors: dict[int, Sequence[ErrorCode]] = {}

    def left(piece: int, of_piece: Sequence[ErrorCode]) -> None:
        errors[piece] = of_piece
        if len(errors) == len(pieces):
            in_order = chain.from_iterable(errors[number] for number in range(len(pieces)))
            request.answer_after(_response(request, leaving, list(in_order)))

    for number, piece in enumerate(pieces):
        try:
            coordinator = context.coordinators.group
            coordinator.leave_group(body.group_id, piece, partial(left, number))
        except KafkaError as refusal:
            if not number:
                raise
            left(number, [refusal.code] * len(piece))
        yield from count_items(len(piece))
    return PARKED


def _leaving(member: messages.LeaveGroupRequest.MemberIdentity) -> LeavingMember:
    return LeavingMember(member.member_id, member.group_instance_id, member.reason)


def _response(
    request: Request[messages.LeaveGroupRequest],
    leaving: Sequence[LeavingMember],
    errors: Sequence[ErrorCode],
) -> Steps[messages.LeaveGroupResponse]:
    response = messages.LeaveGroupResponse
    if request.api_version < FIRST_VERSION_WITH_SEVERAL_MEMBERS:
        return response(error_code=errors[0])
    of_group = next((error for error in errors if error not in OF_MEMBERS), None)
    if of_group is not None:
        return response(error_code=of_group)
    members = []
    for member, error in zip(leaving, errors, strict=True):
        members.append(
            response.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error,
            )
        )
        yield
    return response(members=members)
