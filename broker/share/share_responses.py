"""The answers to ShareFetch and ShareAcknowledge, with the leaders of what is not led here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from ...common.errors import AUTHORIZATION_FAILED, ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...runtime.steps import Steps, map_in_steps
from ..request.context import HandlerContext
from ..request.current_leaders import add_endpoint, current_leader
from ..request.requests import Request
from .share_partition_manager import SharePartitionData
from .share_sessions import INITIAL_EPOCH, PartitionId, ShareSession

FetchedPartitions: TypeAlias = dict[PartitionId, SharePartitionData]
Refusals: TypeAlias = Mapping[PartitionId, KafkaError | None]

AnswerT = TypeVar("AnswerT", messages.ShareFetchResponse, messages.ShareAcknowledgeResponse)

TELLS_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
NOTHING = SharePartitionData()


def fetch_response(
    context: HandlerContext,
    request: Request[messages.ShareFetchRequest],
    session: ShareSession,
    fetched: FetchedPartitions,
    refusals: Refusals,
) -> Steps[messages.ShareFetchResponse]:
    """The answer to a ShareFetch: what was handed out, and what became of acknowledgements.

    The first one of a session has the partitions without news as well, and so has a later one those
    that were added, or that failed before (CachedSharePartition.maybeUpdateResponseData).
    """
    response = messages.ShareFetchResponse
    topics: dict[bytes, list[messages.ShareFetchResponse.PartitionData]] = {}
    is_first = request.body.share_session_epoch == INITIAL_EPOCH
    for partition_id in dict.fromkeys((*fetched, *refusals)):
        data = fetched.get(partition_id, NOTHING)
        refusal = refusals.get(partition_id)
        yield
        is_due = is_first or partition_id in refusals or partition_id in session.unreported
        if not (data.error or data.acquired or is_due):
            continue
        if data.error:
            session.unreported.add(partition_id)
        else:
            session.unreported.discard(partition_id)
        answer = response.PartitionData(
            partition_index=partition_id[1],
            error_code=data.error,
            acknowledge_error_code=ErrorCode.NONE if refusal is None else refusal.code,
            acknowledge_error_message=_message(refusal),
            records=data.records,
            acquired_records=[
                response.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in data.acquired
            ],
        )
        topics.setdefault(partition_id[0], []).append(answer)
    whole = response(
        acquisition_lock_timeout_ms=_lock_ms(context, session.key.group_id),
        responses=(
            yield from map_in_steps(
                lambda each: response.ShareFetchableTopicResponse(
                    topic_id=each[0], partitions=each[1]
                ),
                topics.items(),
            )
        ),
    )
    yield from _tell_leaders(context, request, whole)
    return whole


def acknowledge_response(
    context: HandlerContext,
    request: Request[messages.ShareAcknowledgeRequest],
    group_id: str,
    refusals: Refusals,
) -> Steps[messages.ShareAcknowledgeResponse]:
    """The answer to a ShareAcknowledge."""
    response = messages.ShareAcknowledgeResponse
    topics: dict[bytes, list[messages.ShareAcknowledgeResponse.PartitionData]] = {}
    for partition_id, refusal in refusals.items():
        yield
        code = ErrorCode.NONE if refusal is None else refusal.code
        answer = response.PartitionData(
            partition_index=partition_id[1],
            error_code=code,
            error_message=_message(refusal),
        )
        topics.setdefault(partition_id[0], []).append(answer)
    whole = response(
        acquisition_lock_timeout_ms=_lock_ms(context, group_id),
        responses=(
            yield from map_in_steps(
                lambda each: response.ShareAcknowledgeTopicResponse(
                    topic_id=each[0], partitions=each[1]
                ),
                topics.items(),
            )
        ),
    )
    yield from _tell_leaders(context, request, whole)
    return whole


def _message(refusal: KafkaError | None) -> str | None:
    """What is said of an acknowledgement; Kafka has no words for one that is not authorized."""
    if refusal is None or refusal.code in AUTHORIZATION_FAILED:
        return None
    return refusal.message


def _lock_ms(context: HandlerContext, group_id: str) -> int:
    return context.coordinators.share_partitions.limits(group_id).lock_ms


def _tell_leaders(
    context: HandlerContext, request: Request[object], answer: AnswerT
) -> Steps[None]:
    """Put the leaders into an answer, of the partitions that failed for want of them."""
    for topic in answer.responses:
        name = context.metadata_cache.topic_name(topic.topic_id)
        if name is None:
            continue
        for partition in topic.partitions:
            yield
            acknowledged = getattr(partition, "acknowledge_error_code", ErrorCode.NONE)
            if TELLS_LEADER.isdisjoint((partition.error_code, acknowledged)):
                continue
            found = current_leader(
                context,
                TopicPartition(name, partition.partition_index),
                request.connection.listener_name,
            )
            partition.current_leader = answer.LeaderIdAndEpoch(
                leader_id=found.leader_id, leader_epoch=found.leader_epoch
            )
            add_endpoint(answer, found.node)
