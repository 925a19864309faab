"""What Fetch's versions mean, and how a fetch's results become its answer."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import ErrorCode
from ...common.sentinels import READ_COMMITTED
from ...protocol import messages
from ...replication.partition.partition import FetchIsolation
from ...replication.read.fetch import FetchParams, FetchPartitionData
from ...replication.read.reading import PARTITIONS_PER_PIECE
from ...runtime.steps import Steps, in_batches
from .context import HandlerContext
from .current_leaders import tell_fetcher
from .fetch_sessions import FetchSession, PartitionKey
from .requests import Request

FIRST_VERSION_WITH_STORAGE_ERRORS = 6
FIRST_VERSION_WITH_SESSIONS = 7
FIRST_VERSION_THAT_ASKS_FOLLOWERS = 11
FIRST_FLEXIBLE_VERSION = 12
FIRST_VERSION_WITH_TOPIC_IDS = 13

PARTITION_BYTES = 40
"""About what a partition takes in an answer, besides its records."""

Results = Sequence[tuple[PartitionKey, FetchPartitionData]]
"""What partitions answer, by what the request calls them."""


def fetch_params(
    context: HandlerContext, request: Request[object], body: messages.FetchRequest
) -> FetchParams:
    """What holds for all partitions of a fetch."""
    replica_id = max(body.replica_id, body.replica_state.replica_id)
    if replica_id >= 0:
        return FetchParams(
            max_wait_ms=body.max_wait_ms,
            min_bytes=min(body.min_bytes, body.max_bytes),
            max_bytes=body.max_bytes,
            isolation=FetchIsolation.LOG_END,
            replica_id=replica_id,
            replica_epoch=body.replica_state.replica_epoch,
        )
    max_bytes = min(body.max_bytes, context.config["fetch.max.bytes"])
    stage = context.quotas.stage
    if stage is not None:
        max_bytes = min(max_bytes, stage.fetch_bytes_max(request.connection, request.client_id))
    return FetchParams(
        max_wait_ms=body.max_wait_ms,
        min_bytes=min(body.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=(
            FetchIsolation.TRANSACTION_COMMITTED
            if body.isolation_level == READ_COMMITTED
            else FetchIsolation.HIGH_WATERMARK
        ),
        rack=body.rack_id,
        may_ask_followers=request.api_version >= FIRST_VERSION_THAT_ASKS_FOLLOWERS,
    )


def fetch_response(
    context: HandlerContext,
    request: Request[object],
    session: FetchSession | None,
    results: Results,
    *,
    is_full: bool,
) -> messages.FetchResponse:
    """The answer; of a session it holds what its client does not know yet, or all if it is new."""
    if session is not None:
        with_records = [key for key, data in results if len(data.records)]
        changed = []
        for key, data in results:
            cached = session.partitions.get(key)
            has_news = cached.take_news(data) if cached is not None else True
            if has_news or is_full:
                changed.append((key, data))
        if with_records:
            session.move_to_end(with_records)
        results = changed
    response = messages.FetchResponse
    answer = response(session_id=session.id if session is not None else 0)
    # In the order of the results: a topic stands there again where others came in between.
    topics: list[tuple[str | bytes, list[messages.FetchResponse.PartitionData]]] = []
    for (topic, index), data in results:
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        partition = partition_data(index, data)
        if data.error:
            explain(context, request, answer, partition, topic)
        topics[-1][1].append(partition)
    answer.responses = [
        response.FetchableTopicResponse(topic_id=topic, partitions=partitions)
        if isinstance(topic, bytes)
        else response.FetchableTopicResponse(topic=topic, partitions=partitions)
        for topic, partitions in topics
    ]
    return answer


def fetch_response_in_steps(
    context: HandlerContext,
    request: Request[object],
    session: FetchSession | None,
    results: Results,
    *,
    is_full: bool,
) -> Steps[messages.FetchResponse]:
    """The same, as work that yields after some partitions."""
    answer = messages.FetchResponse(session_id=session.id if session is not None else 0)
    for batch in in_batches(results, PARTITIONS_PER_PIECE):
        piece = fetch_response(context, request, session, batch, is_full=is_full)
        for topic in piece.responses:
            before = answer.responses[-1] if answer.responses else None
            if before is not None and (before.topic, before.topic_id) == (
                topic.topic,
                topic.topic_id,
            ):
                before.partitions += topic.partitions
            else:
                answer.responses.append(topic)
        for endpoint in piece.node_endpoints:
            if endpoint.node_id not in {each.node_id for each in answer.node_endpoints}:
                answer.node_endpoints.append(endpoint)
        yield
    return answer


def explain(
    context: HandlerContext,
    request: Request[object],
    answer: messages.FetchResponse,
    refused: messages.FetchResponse.PartitionData,
    topic: str | bytes,
) -> None:
    """Say a partition's error as the request's version has it, and who leads if that helps."""
    version = request.api_version
    if (
        version < FIRST_VERSION_WITH_STORAGE_ERRORS
        and refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    ):
        refused.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    tell_fetcher(
        context,
        version,
        request.connection.listener_name,
        answer,
        refused,
        topic,
        is_from_follower=request.is_from_follower,
    )


def partition_data(index: int, data: FetchPartitionData) -> messages.FetchResponse.PartitionData:
    """One partition's part of the answer."""
    response = messages.FetchResponse
    partition = response.PartitionData(
        partition_index=index,
        error_code=data.error,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        aborted_transactions=(
            None
            if data.aborted_transactions is None
            else [
                response.AbortedTransaction(
                    producer_id=aborted.producer_id, first_offset=aborted.first_offset
                )
                for aborted in data.aborted_transactions
            ]
        ),
        preferred_read_replica=data.preferred_read_replica,
        records=data.records,
    )
    if data.diverging_epoch is not None:
        epoch, end_offset = data.diverging_epoch
        partition.diverging_epoch = response.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return partition
