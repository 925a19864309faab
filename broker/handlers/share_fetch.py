"""ShareFetch (78), versions 1-2: acquire records for a share group, and acknowledge (KIP-932).

Behaviour: what it acknowledges is taken first; then records are handed out, of the partitions of
the member's session in turn, as soon as min_bytes are there or max_wait_ms have passed. A session
begins with epoch 0 and ends with -1, which fetches nothing. Records go out as slices of the
segment files.
Version notes: 2 may renew locks (KIP-1222), and may be held to the number of records (KIP-1206).
Departures from Kafka: a topic id that nobody knows is UNKNOWN_TOPIC_ID of its partitions; there the
whole fetch fails with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import FINAL_EPOCH
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from ..share.record_states import AcquireMode
from ..share.share_partition_manager import (
    RequestedPartition,
    ShareFetchParams,
    ShareFetchResults,
    SharePartitionData,
)
from ..share.share_requests import (
    AcknowledgeOutcomes,
    acknowledged_in,
    close_with_connection,
    resolve,
    session_key,
)
from ..share.share_responses import FetchedPartitions, fetch_response
from ..share.share_sessions import INITIAL_EPOCH, PartitionId, SessionKey, ShareSession


@in_steps
def handle_share_fetch(
    context: HandlerContext, request: Request[messages.ShareFetchRequest]
) -> Steps[messages.ShareFetchResponse | Parked]:
    """Acknowledge, then hand records out; the answer may come later."""
    body = request.body
    epoch = body.share_session_epoch
    manager = context.coordinators.share_partitions
    try:
        key = session_key(context, request)
        if body.is_renew_ack and any(
            (body.max_wait_ms, body.min_bytes, body.max_bytes, body.max_records)
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        acknowledged = yield from acknowledged_in(request)
        if epoch == INITIAL_EPOCH and acknowledged:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if epoch < FINAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = yield from _session(context, request, key)
    except KafkaError as refusal:
        return messages.ShareFetchResponse(error_code=refusal.code)
    fetched: FetchedPartitions = {}

    def respond() -> None:
        request.answer_after(fetch_response(context, request, session, fetched, outcomes.refusals))

    outcomes = AcknowledgeOutcomes(respond)
    yield from outcomes.submit(context, request, key, acknowledged)
    if epoch == FINAL_EPOCH:
        outcomes.wait_for_one()
        manager.close_session(session, outcomes.end_one)
    elif body.max_records > 0 and not body.is_renew_ack:
        yield from _fetch(context, request, session, fetched, outcomes)
    outcomes.end_one()
    return PARKED


def _session(
    context: HandlerContext, request: Request[messages.ShareFetchRequest], key: SessionKey
) -> Steps[ShareSession]:
    """The session that the request opens, goes on with or ends.

    Raises:
        KafkaError: there is no such session, or it is in another epoch, or there are too many.
    """
    body = request.body
    sessions = context.coordinators.share_partitions.sessions
    named: list[PartitionId] = []
    for topic in body.topics:
        for partition in topic.partitions:
            named.append((topic.topic_id, partition.partition_index))
            yield
    if body.share_session_epoch == INITIAL_EPOCH:
        close_with_connection(context, request.connection)
        return sessions.open(key, request.connection, named)
    session = sessions.resume(key, body.share_session_epoch)
    if body.share_session_epoch != FINAL_EPOCH:
        session.add(named)
        for forgotten in body.forgotten_topics_data:
            for number in forgotten.partitions:
                session.forget((forgotten.topic_id, number))
    return session


def _fetch(
    context: HandlerContext,
    request: Request[messages.ShareFetchRequest],
    session: ShareSession,
    fetched: FetchedPartitions,
    outcomes: AcknowledgeOutcomes,
) -> Steps[None]:
    """Hand out what the session's partitions have."""
    body = request.body
    requested: list[RequestedPartition] = []
    for partition_id in session.rotated():
        yield
        try:
            requested.append(resolve(context, request, partition_id))
        except KafkaError as refusal:
            fetched[partition_id] = SharePartitionData(refusal.code)

    def complete(results: ShareFetchResults) -> None:
        for each, data in results:
            fetched[each.id] = data
        outcomes.end_one()

    outcomes.wait_for_one()
    try:
        mode = AcquireMode(body.share_acquire_mode)
    except ValueError:
        mode = AcquireMode.BATCH_OPTIMIZED
    context.coordinators.share_partitions.fetch(
        ShareFetchParams(
            session.key.group_id,
            session.key.member_id,
            0 if fetched else body.max_wait_ms,
            body.min_bytes,
            min(body.max_bytes, context.config["fetch.max.bytes"]),
            body.max_records,
            body.batch_size,
            mode,
        ),
        requested,
        complete,
    )
