"""Heartbeat (12), versions 0-4: a member of a group says that it is alive.

Behaviour: extends the member's session, and tells it to rejoin (REBALANCE_IN_PROGRESS)
while the group prepares a rebalance. While the group is being loaded the answer is no
error, as in Kafka: nobody's session runs yet.
Version notes: 3 names static members.
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request


def handle_heartbeat(
    context: HandlerContext, request: Request[messages.HeartbeatRequest]
) -> Answer[messages.HeartbeatResponse]:
    """Extend the session and answer at once."""
    body = request.body
    if not context.authorize(request, "READ", "GROUP", body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return Answer(
        messages.HeartbeatResponse(
            error_code=context.coordinators.group.heartbeat(
                body.group_id, body.generation_id, body.member_id, body.group_instance_id
            )
        )
    )
