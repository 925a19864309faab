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

from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...replication.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from ...replication.fetch_counting import count_fetches
from ...replication.partition import FetchIsolation
from ...storage.topic_partition import TopicPartition
from ..authorized_operations import CLUSTER_NAME
from ..current_leaders import tell_fetcher
from ..fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    PartitionKey,
    RequestedPartition,
)
from .registry import handles

if TYPE_CHECKING:
    from ..broker import Broker
    from ..requests import Request

FIRST_VERSION_WITH_STORAGE_ERRORS = 6
FIRST_VERSION_THAT_ASKS_FOLLOWERS = 11
FIRST_VERSION_WITH_TOPIC_IDS = 13
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)

Asked = dict[FetchPartition, PartitionKey]


@handles(ApiKey.FETCH, versions="4-18")
def handle_fetch(broker: Broker, request: Request) -> messages.FetchResponse | None:
    """Read what is asked; the answer may come later."""
    body: messages.FetchRequest = request.body
    if body.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "there is no such isolation level")
    by_id = request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    try:
        session = _session(broker, body, by_id)
    except KafkaError as refusal:
        return messages.FetchResponse(error_code=refusal.code)
    if session is None:
        # A partition named twice is answered once, as it was named last.
        requested = list({wish.key: wish for wish in _requested(body, by_id)}.values())
    else:
        requested = [cached.requested for cached in session.partitions.values()]
    params = _params(broker, body, request.api_version)
    request.is_from_follower = params.is_from_follower
    asked, errors = _resolve(broker, request, requested, by_id)

    def on_complete(results: FetchResults) -> None:
        count_fetches(broker.replica_manager.hosted, params, results)
        data = [((asked[partition]), result) for partition, result in results]
        request.answer(_response(broker, request, session, data + errors))

    broker.replica_manager.fetch_messages(params, list(asked), on_complete)
    return None


def _session(broker: Broker, body: messages.FetchRequest, by_id: bool) -> FetchSession | None:
    """The session that the request opens or goes on with; None for one without.

    Raises:
        KafkaError: there is no such session, or it is used in the wrong way.
    """
    sessions = broker.fetch_sessions
    now_ms = broker.clock.monotonic_ms()
    if body.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        sessions.close(body.session_id)
        if body.session_epoch == FINAL_EPOCH:
            return None
        session = sessions.create(by_id, now_ms)
        if session is not None:
            session.update(_requested(body, by_id), ())
        return session
    session = sessions.use(body.session_id, body.session_epoch, by_id, now_ms)
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
    return [
        RequestedPartition(
            (topic.topic_id if by_id else topic.topic, partition.partition),
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
        )
        for topic in body.topics
        for partition in topic.partitions
    ]


def _params(broker: Broker, body: messages.FetchRequest, version: int) -> FetchParams:
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
    max_bytes = min(body.max_bytes, broker.config["fetch.max.bytes"])
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
        may_ask_followers=version >= FIRST_VERSION_THAT_ASKS_FOLLOWERS,
    )


def _resolve(
    broker: Broker, request: Request, requested: list[RequestedPartition], by_id: bool
) -> tuple[Asked, list[tuple[PartitionKey, FetchPartitionData]]]:
    """Names for ids, and errors for what cannot be read at all."""
    is_from_follower = request.is_from_follower
    may_read_all = is_from_follower and broker.authorize(
        request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME
    )
    topic_names: dict[bytes, str | None] = {}
    asked: Asked = {}
    errors: list[tuple[PartitionKey, FetchPartitionData]] = []
    for partition in requested:
        topic, index = partition.key
        name: str | None
        topic_id = b""
        if isinstance(topic, bytes):
            topic_id = topic
            if topic not in topic_names:
                name = broker.metadata_cache.topic_name(topic)
                if name is None and is_from_follower:  # it may be told of a topic before we are
                    name = broker.replica_manager.hosted.online.topic_name(topic)
                topic_names[topic] = name
            name = topic_names[topic]
        else:
            name = topic
        error = ErrorCode.NONE
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not may_read_all and (
            is_from_follower or not broker.authorize(request, "READ", "TOPIC", name)
        ):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not is_from_follower and not broker.metadata_cache.contains_partition(name, index):
            # Found out before anything is read, so that the others may still be waited for.
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error:
            errors.append((partition.key, FetchPartitionData(error, aborted_transactions=())))
            continue
        assert name is not None
        asked[
            FetchPartition(
                TopicPartition(name, index),
                topic_id,
                partition.fetch_offset,
                partition.max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
                partition.log_start_offset,
            )
        ] = partition.key
    return asked, errors


def _response(
    broker: Broker,
    request: Request,
    session: FetchSession | None,
    results: list[tuple[PartitionKey, FetchPartitionData]],
) -> messages.FetchResponse:
    if session is not None:
        is_full = request.body.session_epoch == INITIAL_EPOCH
        with_records = [key for key, data in results if len(data.records)]
        told = []
        for key, data in results:
            cached = session.partitions.get(key)
            has_news = cached.take_news(data) if cached is not None else True
            if has_news or is_full:
                told.append((key, data))
        session.move_to_end(with_records)
        results = told
    response = messages.FetchResponse
    answer = response(session_id=session.id if session is not None else 0)
    # In the order of the results: a topic stands there again where others came in between.
    topics: list[tuple[str | bytes, list[Any]]] = []
    for (topic, index), data in results:
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        partition = _partition_data(index, data)
        if data.error:
            _explain(broker, request, answer, partition, topic)
        topics[-1][1].append(partition)
    answer.responses = [
        response.FetchableTopicResponse(topic_id=topic, partitions=partitions)
        if isinstance(topic, bytes)
        else response.FetchableTopicResponse(topic=topic, partitions=partitions)
        for topic, partitions in topics
    ]
    return answer


def _explain(
    broker: Broker,
    request: Request,
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
    tell_fetcher(broker, version, request.connection.listener_name, answer, refused, topic)


def _partition_data(index: int, data: FetchPartitionData) -> messages.FetchResponse.PartitionData:
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
