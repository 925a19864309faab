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
from ...common.sentinels import FINAL_EPOCH, ISOLATION_LEVELS, NO_EPOCH
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...replication.purgatory.idle_partition_cache import idle_partition
from ...replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from ...replication.read.reading import PARTITIONS_AT_ONCE, PARTITIONS_PER_PIECE
from ...runtime.steps import Steps, in_batches
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.fast_path.implicit_session import (
    ImplicitFetchSession,
    begin_session,
    leave_session,
    session_of,
)
from ..request.fast_path.memo import PARTITIONS_MAX
from ..request.fetch_rules import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    PARTITION_BYTES,
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
    key_of,
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
    if session is None:
        if (body.topics or body.forgotten_topics_data) and _names_many(body):
            return Stepwise(_fetch_in_steps(context, request, params, terms, None))
        try:
            session = _session(context, body, by_id)
        except KafkaError as refusal:
            return Answer(messages.FetchResponse(error_code=refusal.code))
    requested: Sequence[RequestedPartition] | None
    if session is None:
        # A partition named twice is answered once, as it was named last.
        requested = list(
            {partition.key: partition for partition in _requested(body, by_id)}.values()
        )
    elif _check_idle(context, request, session, terms):
        requested = session.requested_partitions()
    else:
        requested = None
    if requested is None:
        return Stepwise(_fetch_in_steps(context, request, params, terms, session))
    partitions, errors = _resolve(context, request, requested, by_id) if requested else ([], [])
    if errors and isinstance(session, ImplicitFetchSession):
        return Stepwise(_fetch_in_steps(context, request, params, terms, session))
    if session is None:
        begin_session(context, request, len(partitions))
    _read(context, request, params, session, partitions, errors)
    return PARKED


def _names_many(body: messages.FetchRequest) -> bool:
    """Whether a request has more partitions than are handled at once."""
    named = 0
    for topic in body.topics:
        named += 1 + len(topic.partitions)
    for forgotten in body.forgotten_topics_data:
        named += 1 + len(forgotten.partitions)
    return named > PARTITIONS_AT_ONCE


def _read(
    context: HandlerContext,
    request: Request[messages.FetchRequest],
    params: FetchParams,
    session: FetchSession | None,
    partitions: list[FetchPartition],
    errors: list[tuple[PartitionKey, FetchPartitionData]],
) -> None:
    """Read partitions that were resolved, and answer, perhaps later."""
    implicit = session if isinstance(session, ImplicitFetchSession) else None
    is_full = implicit is not None or request.body.session_epoch == INITIAL_EPOCH

    def on_complete(results: FetchResults | Steps[FetchResults]) -> None:
        if not isinstance(results, list):
            _read_in_turn(context, request, params, session, results, errors)
            return
        stage = context.quotas.stage
        if stage is not None and _must_wait(context, stage, request, session, results):
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
        answer = fetch_response(context, request, session, data + errors, is_full=is_full)
        if implicit is not None:
            implicit.answer(request, answer)
        else:
            request.answer(answer)
        if session is not None:
            for (key, _), (each, result) in zip(data, results, strict=False):
                idle = idle_partition(replica_manager.partitions, params, each, result)
                if idle is not None:
                    session.mark_idle(key, idle)

    context.replica_manager.fetch_messages(params, partitions, on_complete, session)


# -- many partitions, some at a time ------------------------------------------------------


def _fetch_in_steps(
    context: HandlerContext,
    request: Request[messages.FetchRequest],
    params: FetchParams,
    terms: Terms,
    session: FetchSession | None,
) -> Steps[messages.FetchResponse | Parked]:
    """What `handle_fetch` does, for many partitions.

    Args:
        session: if it is known already.
    """
    body = request.body
    by_id = request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if session is None:
        try:
            session = yield from _session_in_steps(context, body, by_id)
        except KafkaError as refusal:
            return messages.FetchResponse(error_code=refusal.code)
    requested: Sequence[RequestedPartition]
    if session is None:
        requested = yield from _named_in_steps(body, by_id)
    else:
        yield from _check_idle_in_steps(context, request, session, terms)
        requested = yield from session.requested_in_steps()
    if len(requested) > PARTITIONS_MAX:
        request.memo = None
    partitions, errors = yield from _resolve_in_steps(context, request, requested, by_id)
    if errors and isinstance(session, ImplicitFetchSession):
        yield from leave_session(request)
        session = None
        requested = yield from _named_in_steps(body, by_id)
        partitions, errors = yield from _resolve_in_steps(context, request, requested, by_id)
    elif session is None:
        begin_session(context, request, len(partitions))

    def on_complete(found: FetchResults | Steps[FetchResults]) -> None:
        _read_in_turn(context, request, params, session, found, errors)

    results = yield from context.replica_manager.fetch_messages_in_steps(
        params, partitions, on_complete, session
    )
    if results is not None:
        yield from _answer_in_steps(context, request, params, session, results, errors)
    return PARKED


def _read_in_turn(
    context: HandlerContext,
    request: Request[messages.FetchRequest],
    params: FetchParams,
    session: FetchSession | None,
    found: FetchResults | Steps[FetchResults],
    errors: Sequence[tuple[PartitionKey, FetchPartitionData]],
) -> None:
    """Answer a fetch that has waited, among all else that is done in steps."""

    def work() -> Steps[Parked]:
        results = found if isinstance(found, list) else (yield from found)
        yield from _answer_in_steps(context, request, params, session, results, errors)
        return PARKED

    request.answer_in_turn(work())


def _answer_in_steps(
    context: HandlerContext,
    request: Request[messages.FetchRequest],
    params: FetchParams,
    session: FetchSession | None,
    results: FetchResults,
    errors: Sequence[tuple[PartitionKey, FetchPartitionData]],
) -> Steps[None]:
    stage = context.quotas.stage
    if stage is not None and _must_wait(context, stage, request, session, results):
        return
    replica_manager, hosted = context.replica_manager, context.replica_manager.partitions
    if session is not None and session.idle_topics:
        replica_manager.count_idle_partitions(session.idle_topics)
    epoch = NO_EPOCH if session is None else session.epoch
    found: list[tuple[PartitionKey, FetchPartitionData]] = []
    for piece in in_batches(results, PARTITIONS_PER_PIECE):
        replica_manager.count_fetches(params, piece)
        data = [(key_of(each), result) for each, result in piece]
        found += data
        yield
        if session is None or session.epoch != epoch:  # somebody else goes on with it
            continue
        for (key, _), (each, result) in zip(data, piece, strict=True):
            idle = idle_partition(hosted, params, each, result)
            if idle is not None and idle.is_led_for(params):
                session.mark_idle(key, idle)
    found += errors
    is_new = request.body.session_epoch == INITIAL_EPOCH
    is_implicit = isinstance(session, ImplicitFetchSession)
    answer = yield from fetch_response_in_steps(
        context, request, session, found, is_full=is_new or is_implicit
    )
    if isinstance(session, ImplicitFetchSession):
        yield from session.answer_in_steps(request, answer)
    else:
        yield from request.answer_in_steps(answer)


def _session_in_steps(
    context: HandlerContext, body: messages.FetchRequest, by_id: bool
) -> Steps[FetchSession | None]:
    """What `_session` does, for many partitions."""
    sessions = context.fetch_sessions
    session: FetchSession | None
    if body.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        names_none = messages.FetchRequest(
            session_id=body.session_id, session_epoch=body.session_epoch
        )
        session = _session(context, names_none, by_id)
    else:
        now_ms = context.clock.monotonic_ms()
        session = sessions.use(body.session_id, body.session_epoch, by_id, now_ms)
    if session is None:
        return None
    for topic in body.topics:
        for piece in in_batches(topic.partitions, PARTITIONS_PER_PIECE):
            session.update(_requested_of(topic, piece, by_id), ())
            yield
    for forgotten in body.forgotten_topics_data:
        name = forgotten.topic_id if by_id else forgotten.topic
        for numbers in in_batches(forgotten.partitions, PARTITIONS_PER_PIECE):
            session.update((), [(name, number) for number in numbers])
            yield
    if not session.partitions and body.session_epoch != INITIAL_EPOCH:
        sessions.close(session.id)
        return None
    return session


def _named_in_steps(body: messages.FetchRequest, by_id: bool) -> Steps[list[RequestedPartition]]:
    """The partitions of a request; one that is named twice is answered once, as named last."""
    by_key: dict[PartitionKey, RequestedPartition] = {}
    for topic in body.topics:
        for piece in in_batches(topic.partitions, PARTITIONS_PER_PIECE):
            for requested in _requested_of(topic, piece, by_id):
                by_key[requested.key] = requested
            yield
    return list(by_key.values())


def _resolve_in_steps(
    context: HandlerContext,
    request: Request[object],
    requested: Sequence[RequestedPartition],
    by_id: bool,
) -> Steps[tuple[list[FetchPartition], list[tuple[PartitionKey, FetchPartitionData]]]]:
    partitions: list[FetchPartition] = []
    errors: list[tuple[PartitionKey, FetchPartitionData]] = []
    for piece in in_batches(requested, PARTITIONS_PER_PIECE):
        found, refused = _resolve(context, request, piece, by_id)
        partitions += found
        errors += refused
        yield
    return partitions, errors


# -- what both have in common -------------------------------------------------------------


def _must_wait(
    context: HandlerContext,
    stage: QuotaStage,
    request: Request[messages.FetchRequest],
    session: FetchSession | None,
    results: FetchResults,
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
    if session is not None and request.body.session_epoch == INITIAL_EPOCH:
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
) -> bool:
    """Have a session's idle partitions looked at, unless what they rest on is still so.

    Returns whether that was done: else there are many.
    """
    if not session.invalidate_unless(context.metadata_cache.snapshot, terms):
        return False
    if request.is_from_follower:
        if not context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
            session.mark_all_active()
    else:
        for topic in session.idle_topics:
            if not context.authorize(request, "READ", "TOPIC", topic):
                session.mark_all_active()
                break
    session.fetched_ms = session.last_used_ms
    return True


def _check_idle_in_steps(
    context: HandlerContext,
    request: Request[object],
    session: FetchSession,
    terms: Terms,
) -> Steps[None]:
    """The same, for many idle partitions."""
    yield from session.invalidate_in_steps_unless(context.metadata_cache.snapshot, terms)
    if request.is_from_follower:
        is_allowed = context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
    else:
        is_allowed = True
        for topic in list(session.idle_topics):
            is_allowed = is_allowed and context.authorize(request, "READ", "TOPIC", topic)
            yield
    if not is_allowed:
        yield from session.mark_all_active_in_steps()
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
