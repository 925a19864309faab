"""ShareAcknowledge (79), versions 1-2: accept, release or reject acquired records (KIP-932).

Behaviour: of each partition all acknowledgements are taken or none, and answered when that is
stored. The last request of a session, of epoch -1, releases what its member has still.
Version notes: 2 may renew locks, and tells how long they last (KIP-1222).
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import FINAL_EPOCH
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from ..share.share_requests import AcknowledgeOutcomes, acknowledged_in, session_key
from ..share.share_responses import acknowledge_response
from ..share.share_sessions import INITIAL_EPOCH


@in_steps
def handle_share_acknowledge(
    context: HandlerContext, request: Request[messages.ShareAcknowledgeRequest]
) -> Steps[messages.ShareAcknowledgeResponse | Parked]:
    """Take what a member says of its records."""
    epoch = request.body.share_session_epoch
    try:
        key = session_key(context, request)
        if epoch == INITIAL_EPOCH or epoch < FINAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        acknowledged = yield from acknowledged_in(request)
        manager = context.coordinators.share_partitions
        session = manager.sessions.resume(key, epoch)
    except KafkaError as refusal:
        return messages.ShareAcknowledgeResponse(error_code=refusal.code)

    def respond() -> None:
        request.answer_after(
            acknowledge_response(context, request, key.group_id, outcomes.refusals)
        )

    outcomes = AcknowledgeOutcomes(respond)
    yield from outcomes.submit(context, request, key, acknowledged)
    if epoch == FINAL_EPOCH:
        outcomes.wait_for_one()
        manager.close_session(session, outcomes.end_one)
    outcomes.end_one()
    return PARKED
