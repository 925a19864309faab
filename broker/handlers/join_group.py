"""JoinGroup (11), versions 0-9: become a member of a group, or stay one in its next generation.

Behaviour: answered when the join phase is over, with the generation, its leader, and to
the leader all members' metadata. The first members of a group wait for others for
group.initial.rebalance.delay.ms. What fails is answered at once.
Version notes: 1 has its own rebalance timeout, before it is the session's; 4 gives a new
dynamic member its id with MEMBER_ID_REQUIRED, to join again with (KIP-394); 5 has static
members (KIP-345); 7 answers the protocol type and may answer no protocol (KIP-559); 8
gives a reason (KIP-800); 9 tells a static leader that came back to skip assigning
(KIP-814).
Departures from Kafka: a member that leaves no one to wait for ends the join phase also
when it is turned away by group.max.size; a member that names more protocols than a thousand is
INVALID_REQUEST, for what its group does with all of them it does in one go.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.classic.messages import JoinAnswer, JoinRequest, MemberProtocol
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

FIRST_VERSION_THAT_REQUIRES_MEMBER_ID = 4
FIRST_VERSION_WITH_NULLABLE_PROTOCOL = 7
FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9
PROTOCOLS_MAX = 1000


@in_steps
def handle_join_group(
    context: HandlerContext, request: Request[messages.JoinGroupRequest]
) -> Steps[messages.JoinGroupResponse | Parked]:
    """Hand the request to the group; the answer may come much later."""
    body = request.body

    def respond(answer: JoinAnswer) -> None:
        request.answer(_response(answer, request.api_version))

    try:
        if not context.authorize(request, "READ", "GROUP", body.group_id):
            respond(JoinAnswer(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""))
            return PARKED
        join_request = yield from _join_request(request)
        context.coordinators.group.join_group(join_request, respond)
    except KafkaError as refusal:
        respond(JoinAnswer(refusal.code, body.member_id))
    return PARKED


def _join_request(request: Request[messages.JoinGroupRequest]) -> Steps[JoinRequest]:
    body = request.body
    version = request.api_version
    if len(body.protocols) > PROTOCOLS_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    protocols: dict[str, MemberProtocol] = {}
    for protocol in body.protocols:
        # The name is a key in Kafka's message too: of two with one name the first counts.
        protocols.setdefault(protocol.name, MemberProtocol(protocol.name, bytes(protocol.metadata)))
        if request.is_long:  # else the metadata lies in memory that the next pass uses again
            yield
    return JoinRequest(
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        client_id=request.client_id,
        client_host=f"/{request.connection.peer_host}",  # Java's way to write an address
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=body.session_timeout_ms if version == 0 else body.rebalance_timeout_ms,
        protocol_type=body.protocol_type,
        protocols=tuple(protocols.values()),
        reason=body.reason,
        requires_known_member_id=version >= FIRST_VERSION_THAT_REQUIRES_MEMBER_ID,
        supports_skipping_assignment=version >= FIRST_VERSION_THAT_SKIPS_ASSIGNMENT,
    )


def _response(answer: JoinAnswer, version: int) -> messages.JoinGroupResponse:
    response = messages.JoinGroupResponse
    protocol_name: str | None = answer.protocol_name or None
    if version < FIRST_VERSION_WITH_NULLABLE_PROTOCOL:
        protocol_name = protocol_name or ""
    return response(
        error_code=answer.error,
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type,
        protocol_name=protocol_name,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            response.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in answer.members
        ],
    )
