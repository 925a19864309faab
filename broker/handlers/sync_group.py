"""SyncGroup (14), versions 0-5: the leader brings the assignment, every member takes its share.

Behaviour: answered when the leader's assignment is in `__consumer_offsets`; in a stable
group at once.
Version notes: 3 names static members; 5 repeats protocol type and name, which must be the
group's (KIP-559).
Departures from Kafka: a second SyncGroup of a member ends the first, which waits, with
REBALANCE_IN_PROGRESS; Kafka forgets it and lets it time out.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.classic.messages import SyncAnswer, SyncRequest
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

FIRST_VERSION_WITH_PROTOCOL = 5


@in_steps
def handle_sync_group(
    context: HandlerContext, request: Request[messages.SyncGroupRequest]
) -> Steps[messages.SyncGroupResponse | Parked]:
    """Hand the request to the group; the answer comes with the assignment."""
    body = request.body
    if request.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        body.protocol_type is None or body.protocol_name is None
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not context.authorize(request, "READ", "GROUP", body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    assignments = {}
    for assigned in body.assignments:
        assignments[assigned.member_id] = bytes(assigned.assignment)
        if request.is_long:  # else the assignments lie in memory that the next pass uses again
            yield

    def respond(answer: SyncAnswer) -> None:
        request.answer(
            messages.SyncGroupResponse(
                error_code=answer.error,
                protocol_type=answer.protocol_type,
                protocol_name=answer.protocol_name,
                assignment=answer.assignment,
            )
        )

    context.coordinators.group.sync_group(
        SyncRequest(
            group_id=body.group_id,
            generation_id=body.generation_id,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            protocol_type=body.protocol_type,
            protocol_name=body.protocol_name,
            assignments=assignments,
        ),
        respond,
    )
    return PARKED
