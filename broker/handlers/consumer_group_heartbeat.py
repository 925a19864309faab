"""ConsumerGroupHeartbeat (68), versions 0-1: membership in a consumer group (KIP-848).

Behaviour: a member joins, stays, changes its subscription, says what it gave up, or leaves; the
answer tells its epoch and, where that changed, what it may own. An answer that tells of a
change comes when that is stored.
Version notes: from 1 on the client makes its member id itself (KIP-1082), and may subscribe by a
regular expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from typing import Final

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.consumer.heartbeat_request import HeartbeatAnswer, HeartbeatRequest
from ...coordinator.group.consumer.member import OwnedPartitions
from ...protocol import messages
from ...runtime.steps import Steps, set_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Answer, Parked, Stepwise
from ..request.requests import Request

FIRST_VERSION_WITH_REGEX = 1
GROUP_VERSION_WITH_CONSUMER_GROUPS = 1
NO_NAMES: Final = frozenset[str]()


def handle_consumer_group_heartbeat(
    context: HandlerContext, request: Request[messages.ConsumerGroupHeartbeatRequest]
) -> (
    Parked
    | Answer[messages.ConsumerGroupHeartbeatResponse]
    | Stepwise[messages.ConsumerGroupHeartbeatResponse]
):
    """Answer at once what says nothing new, as most heartbeats do; take up others in steps."""
    body = request.body
    if body.subscribed_topic_names or body.topic_partitions:
        return Stepwise(_take_up(context, request))
    try:
        _check(context, request)
    except KafkaError as refusal:
        return Answer(_response(HeartbeatAnswer(refusal.code)))
    names = None if body.subscribed_topic_names is None else NO_NAMES
    heartbeat = _heartbeat(context, request, names, None if body.topic_partitions is None else {})
    if context.coordinators.group.consumer_group_keep_alive(heartbeat, partial(_respond, request)):
        return PARKED
    return Stepwise(_take_up(context, request))


def _take_up(
    context: HandlerContext, request: Request[messages.ConsumerGroupHeartbeatRequest]
) -> Steps[messages.ConsumerGroupHeartbeatResponse | Parked]:
    """Hand over a heartbeat that says what its member reads or owns, thousands of topics maybe."""
    body = request.body
    names = body.subscribed_topic_names
    try:
        _check(context, request)
        if not (yield from context.admission.may_describe_all(request, names or ())):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    except KafkaError as refusal:
        return _response(HeartbeatAnswer(refusal.code))  # only the coordinator has words
    try:
        subscribed = None if names is None else (yield from set_in_steps(names))
        owned = yield from _owned(body)
        yield from context.coordinators.group.consumer_group_heartbeat(
            _heartbeat(context, request, subscribed, owned), partial(_respond, request)
        )
    except KafkaError as refusal:
        return _response(HeartbeatAnswer(refusal.code, refusal.message))
    return PARKED


def _check(
    context: HandlerContext, request: Request[messages.ConsumerGroupHeartbeatRequest]
) -> None:
    """Refuse what is not served, or not allowed. Raises KafkaError."""
    check_served(context)
    if not context.authorize(request, "READ", "GROUP", request.body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def _heartbeat(
    context: HandlerContext,
    request: Request[messages.ConsumerGroupHeartbeatRequest],
    names: frozenset[str] | None,
    owned: Mapping[bytes, Set[int]] | None,
) -> HeartbeatRequest:
    """What the coordinator is told.

    Args:
        context, request: of whom.
        names: of the topics that the member subscribes to.
        owned: the partitions that it says it owns.
    """
    body = request.body
    return HeartbeatRequest(
        body.group_id,
        body.member_id,
        body.member_epoch,
        body.instance_id,
        body.rack_id,
        body.rebalance_timeout_ms,
        names,
        body.subscribed_topic_regex if request.api_version >= FIRST_VERSION_WITH_REGEX else None,
        body.server_assignor,
        owned,
        request.client_id,
        f"/{request.connection.peer_host}",  # Java's way to write an address
        request.api_version,
        lambda name: context.admission.is_allowed(request, "DESCRIBE", "TOPIC", name),
    )


def _respond(
    request: Request[messages.ConsumerGroupHeartbeatRequest], answer: HeartbeatAnswer
) -> None:
    request.answer(_response(answer))


def _owned(
    body: messages.ConsumerGroupHeartbeatRequest,
) -> Steps[dict[bytes, set[int]] | None]:
    """The partitions that the client says it owns, by topic id."""
    if body.topic_partitions is None:
        return None
    owned: dict[bytes, set[int]] = {}
    for topic in body.topic_partitions:  # which may name one more than once
        owned.setdefault(topic.topic_id, set()).update(topic.partitions)
        yield
    return owned


def check_served(context: HandlerContext) -> None:
    """Refuse where consumer groups are switched off, by setting or by feature.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    if (
        not context.coordinators.group.serves_consumer_groups
        or context.features.finalized("group.version") < GROUP_VERSION_WITH_CONSUMER_GROUPS
    ):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _response(answer: HeartbeatAnswer) -> messages.ConsumerGroupHeartbeatResponse:
    assignment = answer.assignment
    return messages.ConsumerGroupHeartbeatResponse(
        error_code=answer.error,
        error_message=answer.error_message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None if assignment is None else _assignment(assignment),
    )


def _assignment(owned: OwnedPartitions) -> messages.ConsumerGroupHeartbeatResponse.Assignment:
    response = messages.ConsumerGroupHeartbeatResponse
    return response.Assignment(
        topic_partitions=[
            response.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in owned.items()
        ]
    )
