"""Fetch (1), versions 4-18: read record batches from partitions led here.

Behaviour: resolve (session, topic ids), read, perhaps wait, encode. Answers at once when
enough bytes are there or any partition fails; else when min_bytes came together or
max_wait_ms have passed. Records go out as slices of the segment files.
A follower's fetch, for which the broker must be allowed CLUSTER_ACTION, reads to the log's
end and tells how far it has come.
Version notes: 7 has sessions (KIP-227); 9 leader epochs; 11 names the consumer's rack and may
be sent to a follower (KIP-392); 12 last fetched epochs and is
flexible; 13 names topics by id; 15 moves the replica id into a tagged field; 16 tells who leads
where this broker does not, or in another epoch (KIP-951); 17 adds directory ids and 18 high
watermarks, which only replicas use. Up to 5, KAFKA_STORAGE_ERROR is NOT_LEADER_OR_FOLLOWER.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import FINAL_EPOCH, ISOLATION_LEVELS
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...replication.purgatory.idle_partition_cache import idle_partition
from ...replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from ...runtime.long_work import Steps, in_batches
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.fast_path.implicit_session import (
    ImplicitFetchSession,
    begin_session,
    leave_session,
    session_of,
)
from ..request.fetch_rules import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    PARTITION_BYTES,
    PARTITIONS_PER_PIECE,
    fetch_params,
    fetch_response,
    fetch_response_in_steps,
)
from ..request.fetch_sessions import (
    INITIAL_EPOCH,
    FetchSession,
    PartitionKey,
    RequestedPartition,
    Terms,
    cache_key,
    requested_partition,
)
from ..request.outcomes import PARKED, Answer, Parked, Stepwise
from ..request.requests import Request

if TYPE_CHECKING:
    from ..request.quotas.quota_stage import QuotaStage


def handle_fetch(
    context: HandlerContext, request: Request[messages.FetchRequest]
) -> Answer[messages.FetchResponse] | Parked | Stepwise[messages.FetchResponse]:
    """Read the requested partitions; the answer may come later."""
    body = request.body
    if body.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "there is no such isolation level")
    by_id = request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    params = fetch_params(context, request, body)
    request.is_from_follower = params.replica_id >= 0
    terms = cache_key(params, context.replica_manager.partitions.select_replica)
    session: FetchSession | None = session_of(request)
    if request.is_long:
        return Stepwise(_fetch_in_steps(context, request, params, terms))
    if session is None:
        try:
            session = _session(context, body, by_id)
        except KafkaError as refusal:
            return Answer(messages.FetchResponse(error_code=refusal.code))
    if session is None:
        # A partition named twice is answered once, as it was named last.
        requested = list(
            {partition.key: partition for partition in _requested(body, by_id)}.values()
        )
    else:
        _check_idle(context, request, session, terms)
        requested = session.requested_partitions()
    partitions, errors = _resolve(context, request, requested, by_id)
    if errors and isinstance(session, ImplicitFetchSession):
        return Stepwise(_fetch_in_steps(context, request, params, terms))
    if session is None:
        begin_session(context, request, len(partitions))
    _read(context, request, params, session, partitions, errors)
    return PARKED


def _fetch_in_steps(
    context: HandlerContext,
    request: Request[messages.FetchRequest],
    params: FetchParams,
    terms: Terms,
) -> Steps[messages.FetchResponse | Parked]:
    """The same for a request of many partitions, some at a time."""
    yield from leave_session(request)
    body = request.body
    by_id = request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    try:
        session = _session(context, body, by_id)
    except KafkaError as refusal:
        return messages.FetchResponse(error_code=refusal.code)
    if session is None:
        by_key: dict[PartitionKey, RequestedPartition] = {}
        for topic in body.topics:
            for piece in in_batches(topic.partitions, PARTITIONS_PER_PIECE):
                for requested in _requested_of(topic, piece, by_id):
                    by_key[requested.key] = requested
                yield
        all_requested = list(by_key.values())
    else:
        _check_idle(context, request, session, terms)
        all_requested = session.requested_partitions()
    partitions: list[FetchPartition] = []
    errors: list[tuple[PartitionKey, FetchPartitionData]] = []
    for batch in in_batches(all_requested, PARTITIONS_PER_PIECE):
        found, refused = _resolve(context, request, batch, by_id)
        partitions += found
        errors += refused
        yield
    if session is None:
        begin_session(context, request, len(partitions))
    _read(context, request, params, session, partitions, errors)
    return PARKED


def _read(
    context: HandlerContext,
    request: Request[messages.FetchRequest],
    params: FetchParams,
    session: FetchSession | None,
    partitions: list[FetchPartition],
    errors: list[tuple[PartitionKey, FetchPartitionData]],
) -> None:
    """Read partitions that were resolved, and answer, perhaps later."""
    is_new = request.body.session_epoch == INITIAL_EPOCH
    is_full = is_new or isinstance(session, ImplicitFetchSession)

    def on_complete(results: FetchResults) -> None:
        stage = context.quotas.stage
        if stage is not None and _must_wait(
            context, stage, request, session, results, is_new=is_new
        ):
            return
        replica_manager = context.replica_manager
        replica_manager.count_fetches(params, results)
        if session is not None and session.idle_topics:
            replica_manager.count_idle_partitions(session.idle_topics)
        data: list[tuple[PartitionKey, FetchPartitionData]] = [
            (
                (
                    each.topic_id or each.topic_partition.topic,  # empty where it is named
                    each.topic_partition.partition,
                ),
                result,
            )
            for each, result in results
        ]
        found = data + errors
        if request.is_long:
            request.answer_after(
                fetch_response_in_steps(context, request, session, found, is_full=is_full)
            )
        else:
            answer = fetch_response(context, request, session, found, is_full=is_full)
            if isinstance(session, ImplicitFetchSession):
                session.answer(request, answer)
            else:
                request.answer(answer)
        if session is not None:
            for (key, _), (each, result) in zip(data, results, strict=False):
                idle = idle_partition(replica_manager.partitions, params, each, result)
                if idle is not None:
                    session.mark_idle(key, idle)

    context.replica_manager.fetch_messages(params, partitions, on_complete, session)


def _must_wait(
    context: HandlerContext,
    stage: QuotaStage,
    request: Request[messages.FetchRequest],
    session: FetchSession | None,
    results: FetchResults,
    *,
    is_new: bool,
) -> bool:
    """Whether the client is above a quota; then it was answered without records.

    Its session goes on and knows nothing of what was found, but a new one is not opened.
    """
    if request.is_from_follower or request.connection.is_closed:
        return False
    size = sum(len(data.records) + PARTITION_BYTES for _, data in results)
    throttle_ms = stage.must_wait_to_fetch(request.connection, request.client_id, request, size)
    if not throttle_ms:
        return False
    answer = messages.FetchResponse(throttle_time_ms=throttle_ms)
    if session is not None and is_new:
        context.fetch_sessions.close(session.id)
    elif session is not None:
        answer.session_id = session.id
    request.answer(answer)
    return True


def _check_idle(
    context: HandlerContext,
    request: Request[object],
    session: FetchSession,
    terms: Terms,
) -> None:
    """Have a session's idle partitions looked at, unless what they rest on is still so."""
    session.invalidate_unless(context.metadata_cache.snapshot, terms)
    if request.is_from_follower:
        if not context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
            session.mark_all_active()
    else:
        for topic in session.idle_topics:
            if not context.authorize(request, "READ", "TOPIC", topic):
                session.mark_all_active()
                break
    session.fetched_ms = session.last_used_ms


def _session(
    context: HandlerContext, body: messages.FetchRequest, by_id: bool
) -> FetchSession | None:
    """The session that the request opens or goes on with; None for one without.

    Raises:
        KafkaError: there is no such session, or it is used in the wrong way.
    """
    sessions = context.fetch_sessions
    now_ms = context.clock.monotonic_ms()
    if body.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        sessions.close(body.session_id)
        if body.session_epoch == FINAL_EPOCH:
            return None
        session = sessions.create(by_id, now_ms)
        if session is not None:
            session.update(_requested(body, by_id), ())
        return session
    session = sessions.use(body.session_id, body.session_epoch, by_id, now_ms)
    if body.topics or body.forgotten_topics_data:
        forgotten = [
            (topic.topic_id if by_id else topic.topic, partition)
            for topic in body.forgotten_topics_data
            for partition in topic.partitions
        ]
        session.update(_requested(body, by_id), forgotten)
    if not session.partitions:
        sessions.close(session.id)
        return None
    return session


def _requested(body: messages.FetchRequest, by_id: bool) -> list[RequestedPartition]:
    return [each for topic in body.topics for each in _requested_of(topic, topic.partitions, by_id)]


def _requested_of(
    topic: messages.FetchRequest.FetchTopic,
    partitions: Sequence[messages.FetchRequest.FetchPartition],
    by_id: bool,
) -> list[RequestedPartition]:
    """Some partitions of a topic."""
    name = topic.topic_id if by_id else topic.topic
    return [requested_partition(name, partition) for partition in partitions]


def _resolve(
    context: HandlerContext,
    request: Request[object],
    requested: Sequence[RequestedPartition],
    by_id: bool,
) -> tuple[list[FetchPartition], list[tuple[PartitionKey, FetchPartitionData]]]:
    """Names for ids, and errors for what cannot be read at all."""
    is_from_follower = request.is_from_follower
    may_read_all = is_from_follower and context.authorize(
        request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME
    )
    topic_names: dict[bytes, str | None] = {}
    partitions: list[FetchPartition] = []
    errors: list[tuple[PartitionKey, FetchPartitionData]] = []
    for partition in requested:
        topic, index = partition.key
        name: str | None
        topic_id = b""
        if isinstance(topic, bytes):
            topic_id = topic
            if topic not in topic_names:
                name = context.metadata_cache.topic_name(topic)
                if name is None and is_from_follower:  # it may know of a topic before we do
                    name = context.replica_manager.partitions.topic_name(topic)
                topic_names[topic] = name
            name = topic_names[topic]
        else:
            name = topic
        error = ErrorCode.NONE
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not may_read_all and (
            is_from_follower or not context.authorize(request, "READ", "TOPIC", name)
        ):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not is_from_follower and not context.metadata_cache.contains_partition(name, index):
            # Found out before anything is read, so that the others may still be waited for.
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error:
            errors.append((partition.key, FetchPartitionData(error, aborted_transactions=())))
            continue
        assert name is not None
        partitions.append(
            FetchPartition(
                TopicPartition(name, index),
                topic_id,
                partition.fetch_offset,
                partition.max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
                partition.log_start_offset,
            )
        )
    return partitions, errors
