"""What ShareFetch and ShareAcknowledge have in common: session, partitions, acknowledgements."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_OFFSET
from ...common.topic_partition import TopicPartition
from ...metadata.features import SHARE_VERSION
from ...protocol import messages
from ...runtime.steps import Steps, clear_in_steps
from ..request.context import HandlerContext
from ..request.requests import ClientConnection, Request
from .share_partition import Acknowledgement
from .share_partition_manager import RequestedPartition
from .share_sessions import PartitionId, SessionKey

ShareRequest: TypeAlias = "messages.ShareFetchRequest | messages.ShareAcknowledgeRequest"

MEMBER_ID_LENGTH_MAX = 36


class AcknowledgedPartition(NamedTuple):
    """What a request acknowledges of one partition.

    Attributes:
        id: the partition's.
        acknowledgements: perhaps none, where the request acknowledges something of another one.
        are_valid: whether they are in order, and of types that the request may have.
    """

    id: PartitionId
    acknowledgements: list[Acknowledgement]
    are_valid: bool


def session_key(context: HandlerContext, request: Request[ShareRequest]) -> SessionKey:
    """Whose session a request is of.

    Raises:
        KafkaError: UNSUPPORTED_VERSION, share groups are switched off; GROUP_AUTHORIZATION_FAILED;
            INVALID_REQUEST, group or member have no name.
    """
    if context.features.finalized(SHARE_VERSION) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    group_id, member_id = request.body.group_id, request.body.member_id
    if not context.authorize(request, "READ", "GROUP", group_id or ""):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    check_member_id(member_id)
    if group_id is None or member_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return SessionKey(group_id, member_id)


def check_member_id(member_id: str | None) -> None:
    """Refuse what no member is called (KafkaApis.isMemberIdValid).

    Raises:
        KafkaError: INVALID_REQUEST, without a message, as Kafka answers.
    """
    if not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def acknowledged_in(request: Request[ShareRequest]) -> Steps[list[AcknowledgedPartition]]:
    """What a request acknowledges, partition by partition; nothing: no partition is there."""
    found: list[AcknowledgedPartition] = []
    is_anything_there = False
    for topic in request.body.topics:
        for partition in topic.partitions:
            yield
            acknowledgements: list[Acknowledgement] = []
            are_valid, end = True, NO_OFFSET
            for batch in partition.acknowledgement_batches:
                each = Acknowledgement(
                    batch.first_offset, batch.last_offset, tuple(batch.acknowledge_types)
                )
                may_renew = request.body.is_renew_ack
                are_valid = are_valid and each.is_valid_after(end, may_renew=may_renew)
                end = each.last_offset
                acknowledgements.append(each)
                yield
            partition_id = topic.topic_id, partition.partition_index
            found.append(AcknowledgedPartition(partition_id, acknowledgements, are_valid))
            is_anything_there = is_anything_there or bool(acknowledgements)
    return found if is_anything_there else []


def resolve(
    context: HandlerContext,
    request: Request[ShareRequest],
    partition_id: PartitionId,
    *,
    are_valid: bool = True,
) -> RequestedPartition:
    """The partition that a request names.

    Args:
        context, request: who asks for it.
        partition_id: what the request calls it.
        are_valid: whether what the request acknowledges of it can be taken.

    Raises:
        KafkaError: UNKNOWN_TOPIC_ID, INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED or
            UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic_id, number = partition_id
    name = context.metadata_cache.topic_name(topic_id)
    if name is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if not are_valid:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not context.authorize(request, "READ", "TOPIC", name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not context.metadata_cache.contains_partition(name, number):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return RequestedPartition(topic_id, TopicPartition(name, number))


class AcknowledgeOutcomes:
    """What becomes of a request's acknowledgements; `respond` is called when all is known.

    Attributes:
        refusals: by partition; None: it is stored.
    """

    def __init__(self, respond: Callable[[], None]) -> None:
        self.refusals: dict[PartitionId, KafkaError | None] = {}
        self._respond = respond
        self._waiting = 1

    def submit(
        self,
        context: HandlerContext,
        request: Request[ShareRequest],
        key: SessionKey,
        acknowledged: list[AcknowledgedPartition],
    ) -> Steps[None]:
        """Hand over what a request acknowledges.

        Args:
            context, request, key: who acknowledges it.
            acknowledged: is emptied: to free thousands of acknowledgements takes its time, too.
        """
        for each in acknowledged:
            yield
            self._waiting += 1
            self._submit(context, request, key, each)
            yield from clear_in_steps(each.acknowledgements)
        yield from clear_in_steps(acknowledged)

    def _submit(
        self,
        context: HandlerContext,
        request: Request[ShareRequest],
        key: SessionKey,
        each: AcknowledgedPartition,
    ) -> None:
        def acknowledged(refusal: KafkaError | None) -> None:
            self.refusals[each.id] = refusal or self.refusals.get(each.id)
            self.end_one()

        try:
            requested = resolve(context, request, each.id, are_valid=each.are_valid)
        except KafkaError as refusal:
            acknowledged(refusal.as_value())
            return
        if not each.acknowledgements:
            acknowledged(None)
            return
        context.coordinators.share_partitions.acknowledge(
            key.group_id, key.member_id, requested, each.acknowledgements, acknowledged
        )

    def wait_for_one(self) -> None:
        """Something else is to be waited for, until `end_one`."""
        self._waiting += 1

    def end_one(self) -> None:
        """One less is to be waited for; the last one answers."""
        self._waiting -= 1
        if not self._waiting:
            # What responds knows these outcomes: without it they are freed with the request.
            respond, self._respond = self._respond, _nothing
            respond()


def _nothing() -> None:
    """All is answered."""


def close_with_connection(context: HandlerContext, connection: ClientConnection) -> None:
    """End the sessions of a connection when it is closed."""
    if connection.on_closed is None:
        manager = context.coordinators.share_partitions
        connection.on_closed = lambda: manager.connection_closed(connection)
