"""ShareGroupHeartbeat (76), version 1: membership in a share group (KIP-932).

Behaviour: a member joins, stays, changes its subscription or leaves; the answer tells its epoch
and, where that changed, what it reads. An answer that tells of a change comes when that is stored.
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.share.share_groups import ShareHeartbeat, ShareHeartbeatAnswer
from ...metadata.features import SHARE_VERSION
from ...protocol import messages
from ...runtime.steps import Steps, set_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from ..share.share_requests import check_member_id

SHARE_VERSION_WITH_SHARE_GROUPS = 1


@in_steps
def handle_share_group_heartbeat(
    context: HandlerContext, request: Request[messages.ShareGroupHeartbeatRequest]
) -> Steps[messages.ShareGroupHeartbeatResponse | Parked]:
    """Take the heartbeat up; refusals are answered at once."""
    body = request.body

    def respond(answer: ShareHeartbeatAnswer) -> None:
        request.answer(_response(answer))

    try:
        check_served(context)
        if not context.authorize(request, "READ", "GROUP", body.group_id):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        check_member_id(body.member_id)
        names = body.subscribed_topic_names
        if not (yield from context.admission.may_describe_all(request, names or ())):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    except KafkaError as refusal:
        return _response(ShareHeartbeatAnswer(refusal.code))  # only the coordinator has words
    try:
        yield from context.coordinators.group.share.heartbeat(
            ShareHeartbeat(
                body.group_id,
                body.member_id,
                body.member_epoch,
                body.rack_id,
                None if names is None else (yield from set_in_steps(names)),
                request.client_id,
                f"/{request.connection.peer_host}",  # Java's way to write an address
            ),
            respond,
        )
    except KafkaError as refusal:
        return _response(ShareHeartbeatAnswer(refusal.code, refusal.message))
    return PARKED


def check_served(context: HandlerContext) -> None:
    """Refuse where share groups are switched off, by the feature.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    if context.features.finalized(SHARE_VERSION) < SHARE_VERSION_WITH_SHARE_GROUPS:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _response(answer: ShareHeartbeatAnswer) -> messages.ShareGroupHeartbeatResponse:
    response = messages.ShareGroupHeartbeatResponse
    assignment = None
    if answer.assignment is not None:
        assignment = response.Assignment(
            topic_partitions=[
                response.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in answer.assignment.items()
            ]
        )
    return response(
        error_code=answer.error,
        error_message=answer.error_message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )
