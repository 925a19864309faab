"""What a connection promises: answers in order, fetches that wait and wake, fetch sessions.

Spoken over plain sockets, because client libraries hide the order and the waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from support.raw_connection import RawConnection, build_batch

from odradek.common.sentinels import FINAL_EPOCH

pytestmark = pytest.mark.clients

NONE = 0
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71

PRODUCE_VERSION = 9
FETCH_VERSION = 11
NEW_SESSION_EPOCH = 0
LONG_WAIT_MS = 60_000
SHORT_WAIT_MS = 300
LATE_MS = 20_000
"""How late an answer may be on a busy machine; far less than the long wait."""
ROUND_TRIPS_MAX = 20
"""How many times an answered Produce takes may pass until a fetch that waits for it is answered."""
WAKE_UPS, WAKE_UPS_MAX = 10, 200
TRIES = 3
"""On a machine that is busy, something is late now and then."""
BATCH = build_batch([b"x"], timestamp_ms=int(time.time() * 1000))

Connect = Callable[[], RawConnection]


@pytest.fixture
def connect(broker) -> Iterator[Connect]:
    connections = []

    def open_connection() -> RawConnection:
        connections.append(RawConnection(broker.port))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()


@pytest.fixture
def two_partitions(broker, topic: str) -> str:
    """A topic of two partitions that can be read and written."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    requested = {"num_partitions": 2, "replication_factor": 1}
    admin.create_topics({topic: requested}, wait_for_metadata=True)
    admin.close()
    with RawConnection(broker.port) as connection:
        while errors(ask_fetch(connection, topic, {0: 0, 1: 0})) != [NONE, NONE]:
            pass  # Apache Kafka tells of a topic a moment before it leads its partitions
    return topic


def produce_request(topic: str, records: bytes, partition: int, acks: int) -> ProduceRequest:
    topic_type = ProduceRequest.TopicProduceData
    part = topic_type.PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[topic_type(name=topic, partition_data=[part])],
    )


def ask_produce(connection: RawConnection, topic: str, records: bytes, partition: int = 0) -> int:
    """Produce with acks=all, and return the error code."""
    request = produce_request(topic, records, partition, acks=-1)
    response = connection.ask(request, ProduceResponse, PRODUCE_VERSION)
    return response.responses[0].partition_responses[0].error_code


def fetch_request(
    topic: str,
    offsets: dict[int, int],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    session: tuple[int, int] = (0, FINAL_EPOCH),
    forgotten: Sequence[int] = (),
) -> FetchRequest:
    topic_type = FetchRequest.FetchTopic
    partitions = [
        topic_type.FetchPartition(
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=partition_max_bytes,
        )
        for partition, offset in offsets.items()
    ]
    dropped = [FetchRequest.ForgottenTopic(topic=topic, partitions=list(forgotten))]
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=[topic_type(topic=topic, partitions=partitions)] if partitions else [],
        forgotten_topics_data=dropped if forgotten else [],
        rack_id="",
    )


def ask_fetch(connection: RawConnection, topic: str, offsets: dict[int, int], **how: Any) -> Any:
    request = fetch_request(topic, offsets, **how)
    return connection.ask(request, FetchResponse, FETCH_VERSION)


def sizes(response: Any) -> dict[int, int]:
    """How many bytes of records came for each partition of the answer."""
    return {
        partition.partition_index: len(partition.records or b"")
        for topic in response.responses
        for partition in topic.partitions
    }


def errors(response: Any) -> list[int]:
    return [part.error_code for topic in response.responses for part in topic.partitions]


def test_pipelined_requests_are_answered_in_their_order(connect: Connect) -> None:
    connection = connect()

    sent = []
    for _ in range(50):
        sent.append(connection.send(ApiVersionsRequest(), 0))
        sent.append(connection.send(MetadataRequest(topics=[]), 1))

    answered = []
    for _ in range(50):
        answered.append(connection.receive(ApiVersionsResponse, 0).header.correlation_id)
        answered.append(connection.receive(MetadataResponse, 1).header.correlation_id)
    assert answered == sent


def test_request_behind_a_waiting_fetch_is_answered_after_it(
    connect: Connect, two_partitions: str
) -> None:
    connection = connect()

    waiting = fetch_request(two_partitions, {0: 0}, max_wait_ms=SHORT_WAIT_MS)
    first = connection.send(waiting, FETCH_VERSION)
    second = connection.send(ApiVersionsRequest(), 0)

    assert connection.receive(FetchResponse, FETCH_VERSION).header.correlation_id == first
    assert connection.receive(ApiVersionsResponse, 0).header.correlation_id == second


def test_other_connections_are_served_while_a_fetch_waits(
    connect: Connect, two_partitions: str
) -> None:
    waiting = connect()
    request = fetch_request(two_partitions, {0: 0}, max_wait_ms=LONG_WAIT_MS)
    waiting.send(request, FETCH_VERSION)

    connect().assert_served()


def test_waiting_fetch_is_woken_by_a_produce(connect: Connect, two_partitions: str) -> None:
    consumer, producer = connect(), connect()
    waits_ms, round_trips_ms = [], []

    for offset in range(WAKE_UPS_MAX):
        request = fetch_request(two_partitions, {0: offset}, max_wait_ms=LONG_WAIT_MS)
        consumer.send(request, FETCH_VERSION)
        began = time.monotonic()
        assert ask_produce(producer, two_partitions, BATCH) == NONE
        produced = time.monotonic()
        round_trips_ms.append((produced - began) * 1000)
        response = consumer.receive(FetchResponse, FETCH_VERSION)
        waits_ms.append((time.monotonic() - produced) * 1000)
        assert sizes(response) == {0: len(BATCH)}
        if len(waits_ms) >= WAKE_UPS and min(waits_ms) < ROUND_TRIPS_MAX * min(round_trips_ms):
            break

    assert min(waits_ms) < ROUND_TRIPS_MAX * min(round_trips_ms)
    assert max(waits_ms) < LONG_WAIT_MS


def test_fetch_without_data_is_answered_after_max_wait(
    connect: Connect, two_partitions: str
) -> None:
    connection = connect()
    waits_ms = []

    for _ in range(TRIES):
        started = time.monotonic()
        response = ask_fetch(connection, two_partitions, {0: 0}, max_wait_ms=SHORT_WAIT_MS)
        waits_ms.append((time.monotonic() - started) * 1000)
        assert sizes(response) == {0: 0}

    assert SHORT_WAIT_MS - 5 <= min(waits_ms) < SHORT_WAIT_MS + LATE_MS


def test_fetch_with_max_wait_0_is_answered_at_once(connect: Connect, two_partitions: str) -> None:
    connection = connect()
    waits_ms = []

    for _ in range(TRIES):
        started = time.monotonic()
        response = ask_fetch(connection, two_partitions, {0: 0}, max_wait_ms=0)
        waits_ms.append((time.monotonic() - started) * 1000)
        assert sizes(response) == {0: 0}

    assert min(waits_ms) < LATE_MS


def test_fetch_waits_until_there_are_min_bytes(connect: Connect, two_partitions: str) -> None:
    consumer, producer = connect(), connect()
    request = fetch_request(
        two_partitions, {0: 0, 1: 0}, max_wait_ms=LONG_WAIT_MS, min_bytes=3 * len(BATCH)
    )
    consumer.send(request, FETCH_VERSION)

    ask_produce(producer, two_partitions, BATCH, partition=0)
    ask_produce(producer, two_partitions, BATCH, partition=1)
    ask_produce(producer, two_partitions, BATCH, partition=1)

    response = consumer.receive(FetchResponse, FETCH_VERSION)
    assert sizes(response) == {0: len(BATCH), 1: 2 * len(BATCH)}


def test_fetch_short_of_min_bytes_brings_what_there_is_after_max_wait(
    connect: Connect, two_partitions: str
) -> None:
    connection = connect()
    ask_produce(connection, two_partitions, BATCH)
    started = time.monotonic()

    response = ask_fetch(
        connection, two_partitions, {0: 0}, max_wait_ms=SHORT_WAIT_MS, min_bytes=1 << 20
    )

    assert sizes(response) == {0: len(BATCH)}
    assert (time.monotonic() - started) * 1000 >= SHORT_WAIT_MS - 5


def test_fetch_brings_one_batch_though_it_is_over_the_limits(
    connect: Connect, two_partitions: str
) -> None:
    connection = connect()
    for partition in (0, 0, 1):
        ask_produce(connection, two_partitions, BATCH, partition)

    small_partitions = ask_fetch(connection, two_partitions, {0: 0}, partition_max_bytes=1)
    small_response = ask_fetch(connection, two_partitions, {0: 0, 1: 0}, max_bytes=1)

    assert sizes(small_partitions) == {0: len(BATCH)}
    assert sizes(small_response) == {0: len(BATCH), 1: 0}


@pytest.mark.parametrize("offset", [-1, 2, 2**62])
def test_fetch_outside_of_the_log_is_out_of_range(
    connect: Connect, two_partitions: str, offset: int
) -> None:
    connection = connect()
    ask_produce(connection, two_partitions, BATCH)

    response = ask_fetch(connection, two_partitions, {0: offset}, max_wait_ms=LONG_WAIT_MS)

    assert errors(response) == [OFFSET_OUT_OF_RANGE]


def test_fetch_of_an_unknown_partition_is_answered_at_once(
    connect: Connect, two_partitions: str
) -> None:
    response = ask_fetch(connect(), two_partitions, {7: 0}, max_wait_ms=LONG_WAIT_MS)

    assert errors(response) == [UNKNOWN_TOPIC_OR_PARTITION]


def test_fetch_session_answers_what_has_changed(connect: Connect, two_partitions: str) -> None:
    connection = connect()
    ask_produce(connection, two_partitions, BATCH, partition=0)

    full = ask_fetch(connection, two_partitions, {0: 0, 1: 0}, session=(0, NEW_SESSION_EPOCH))
    session_id = full.session_id
    assert session_id != 0
    assert sizes(full) == {0: len(BATCH), 1: 0}

    moved_on = ask_fetch(connection, two_partitions, {0: 1}, session=(session_id, 1))
    assert (moved_on.session_id, sizes(moved_on)) == (session_id, {})
    ask_produce(connection, two_partitions, BATCH, partition=1)
    changed = ask_fetch(connection, two_partitions, {}, session=(session_id, 2))
    assert sizes(changed) == {1: len(BATCH)}
    forgotten = ask_fetch(connection, two_partitions, {}, session=(session_id, 3), forgotten=[1])
    assert sizes(forgotten) == {}


def test_waiting_fetch_of_a_session_is_woken_by_a_produce(
    connect: Connect, two_partitions: str
) -> None:
    consumer, producer = connect(), connect()
    offsets = {0: 0, 1: 0}
    full = ask_fetch(consumer, two_partitions, offsets, session=(0, NEW_SESSION_EPOCH))

    session = (full.session_id, 1)
    request = fetch_request(two_partitions, {}, max_wait_ms=LONG_WAIT_MS, session=session)
    consumer.send(request, FETCH_VERSION)
    ask_produce(producer, two_partitions, BATCH, partition=1)

    assert sizes(consumer.receive(FetchResponse, FETCH_VERSION)) == {1: len(BATCH)}


def test_fetch_session_refuses_an_epoch_out_of_turn(connect: Connect, two_partitions: str) -> None:
    connection = connect()
    full = ask_fetch(connection, two_partitions, {0: 0}, session=(0, NEW_SESSION_EPOCH))

    response = ask_fetch(connection, two_partitions, {}, session=(full.session_id, 5))

    assert (response.error_code, sizes(response)) == (INVALID_FETCH_SESSION_EPOCH, {})


def test_closed_fetch_session_is_not_found(connect: Connect, two_partitions: str) -> None:
    connection = connect()
    full = ask_fetch(connection, two_partitions, {0: 0}, session=(0, NEW_SESSION_EPOCH))

    closing = ask_fetch(connection, two_partitions, {0: 0}, session=(full.session_id, FINAL_EPOCH))
    after = ask_fetch(connection, two_partitions, {}, session=(full.session_id, 1))

    assert (closing.error_code, closing.session_id) == (NONE, 0)
    assert after.error_code == FETCH_SESSION_ID_NOT_FOUND


def test_produce_with_acks_0_is_not_answered(connect: Connect, two_partitions: str) -> None:
    connection = connect()

    connection.send(produce_request(two_partitions, BATCH, 0, acks=0), PRODUCE_VERSION)

    connection.assert_served()  # the next answer is already that of the next request
    assert sizes(ask_fetch(connection, two_partitions, {0: 0})) == {0: len(BATCH)}


def test_produce_with_acks_0_that_fails_closes_the_connection(
    connect: Connect, two_partitions: str
) -> None:
    connection = connect()

    connection.send(produce_request(two_partitions, BATCH, 7, acks=0), PRODUCE_VERSION)

    connection.assert_closed()


def test_hundred_connections_are_served_together(connect: Connect, two_partitions: str) -> None:
    connections = [connect() for _ in range(100)]

    for connection in connections:
        connection.send(produce_request(two_partitions, BATCH, 0, acks=1), PRODUCE_VERSION)
    offsets = [
        connection.receive(ProduceResponse, PRODUCE_VERSION)
        .responses[0]
        .partition_responses[0]
        .base_offset
        for connection in connections
    ]

    assert sorted(offsets) == list(range(100))
