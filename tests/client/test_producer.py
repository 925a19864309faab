"""The producer against brokers that refuse, move, hang and forget."""

from __future__ import annotations

import pytest
import trio
from support.client_parts import NoChance, partition, topic
from support.scripted_cluster import SILENCE, Received, ScriptedCluster

from odradek.client import (
    BufferExhaustedError,
    ClientSettings,
    DeliveryTimeoutError,
    KafkaClient,
    MetadataTimeoutError,
    Producer,
    ProducerSettings,
)
from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import NO_LEADER
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import InitProducerIdResponse, ProduceResponse
from odradek.protocol.records import RecordBatch, iter_records

TOPIC_ID = bytes(15) + b"\7"


@pytest.fixture
def cluster(nursery) -> ScriptedCluster:
    cluster = ScriptedCluster(nursery, 1, 2)
    lead(cluster, 1, epoch=0)
    cluster.answer_all(ApiKey.PRODUCE, produced)
    cluster.answer_all(
        ApiKey.INIT_PRODUCER_ID,
        lambda received: InitProducerIdResponse(producer_id=100, producer_epoch=3),
    )
    return cluster


@pytest.fixture
def client(cluster) -> KafkaClient:
    return make_client(cluster)


def make_client(cluster, **settings) -> KafkaClient:
    return KafkaClient(
        cluster.bootstrap, ClientSettings(**settings), connect=cluster.connect, random=NoChance()
    )


def lead(cluster: ScriptedCluster, leader: int, epoch: int, topic_id: bytes = TOPIC_ID) -> None:
    """Let a node lead both partitions of topic t, as Metadata answers it."""
    cluster.topics["t"] = topic(
        "t", partition(0, leader, epoch), partition(1, leader, epoch), topic_id=topic_id
    )


def produced(
    received: Received, error: int = 0, leader: tuple[int, int] = (-1, -1), left_out: int = -1
) -> ProduceResponse:
    """An answer to a Produce, the same for each of its partitions."""
    make = ProduceResponse.PartitionProduceResponse
    current = ProduceResponse.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    endpoints = [
        ProduceResponse.NodeEndpoint(node_id=n, host=f"broker-{n}", port=9092, rack=None)
        for n in leader[:1]
        if n >= 0
    ]
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=each.name,
                topic_id=each.topic_id,
                partition_responses=[
                    make(index=p.index, error_code=error, base_offset=42, current_leader=current)
                    for p in each.partition_data
                    if p.index != left_out
                ],
            )
            for each in received.body.topic_data
        ],
        node_endpoints=endpoints,
    )


def sent(cluster: ScriptedCluster) -> list[tuple[int, int, int, list[bytes | None]]]:
    """Node, epoch, sequence and values of each batch that came."""
    found = []
    for node_id, broker in cluster.brokers.items():
        for request in broker.requests_of(ApiKey.PRODUCE):
            for each in request.topic_data:
                for data in each.partition_data:
                    batch = RecordBatch(bytes(data.records))
                    values = [record.value for record in iter_records(batch)]
                    found.append((node_id, batch.producer_epoch, batch.base_sequence, values))
    return found


async def test_records_are_gathered_into_batches_with_an_identity(client, cluster):
    async with client, Producer(client) as producer:
        deliveries = [await producer.send("t", b"%d" % n, partition=0) for n in range(3)]
        assert [(await delivery).offset for delivery in deliveries] == [42, 43, 44]
    assert sent(cluster) == [(1, 3, 0, [b"0", b"1", b"2"])]
    request = cluster.brokers[1].requests_of(ApiKey.PRODUCE)[0]
    assert (request.acks, request.transactional_id) == (-1, None)
    assert request.topic_data[0].topic_id == TOPIC_ID


async def test_records_without_a_key_go_to_a_partition_that_has_a_leader(client, cluster):
    cluster.topics["t"] = topic("t", partition(0, NO_LEADER), partition(1, 1), topic_id=TOPIC_ID)
    async with client, Producer(client) as producer:
        assert (await (await producer.send("t", b"x"))).partition == 1


async def test_a_topic_without_an_id_is_named(client, cluster):
    lead(cluster, 1, 0, topic_id=bytes(16))
    async with client, Producer(client) as producer:
        await producer.send("t", b"x")
    (received,) = [r for r in cluster.brokers[1].requests if r.api_key == ApiKey.PRODUCE]
    assert received.version == 12
    assert received.body.topic_data[0].name == "t"


@pytest.mark.parametrize("names_leader", [True, False])
async def test_a_batch_follows_its_leader(client, cluster, autojump_clock, names_leader):
    def moved(received):
        if not names_leader:
            lead(cluster, 2, epoch=1)
        named = (2, 1) if names_leader else (-1, -1)
        return produced(received, ErrorCode.NOT_LEADER_OR_FOLLOWER, named)

    cluster.brokers[1].answers[ApiKey.PRODUCE] = moved
    async with client, Producer(client) as producer:
        assert (await (await producer.send("t", b"x", partition=0))).offset == 42
    assert sent(cluster)[-1] == (2, 3, 0, [b"x"])


async def test_a_leader_that_is_not_there_yet_is_waited_for(client, cluster, autojump_clock):
    lead(cluster, NO_LEADER, epoch=1)

    async def elect():
        await trio.sleep(3)
        lead(cluster, 2, epoch=2)

    async with client, trio.open_nursery() as electing:
        electing.start_soon(elect)
        async with Producer(client) as producer:
            await producer.send("t", b"x", partition=0)
    assert sent(cluster) == [(2, 3, 0, [b"x"])]


async def test_after_a_lost_connection_the_same_batch_is_sent(client, cluster, autojump_clock):
    async def die_once(received):
        cluster.answer_all(ApiKey.PRODUCE, produced)
        await cluster.brokers[1].disconnect()
        return SILENCE

    cluster.brokers[1].answers[ApiKey.PRODUCE] = die_once
    async with client, Producer(client) as producer:
        await producer.send("t", b"x", partition=0)
    assert sent(cluster) == [(1, 3, 0, [b"x"])] * 2


async def test_a_partition_left_out_of_an_answer_is_sent_again(client, cluster, autojump_clock):
    async with client, Producer(client) as producer:
        cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: produced(received, left_out=1)
        other = await producer.send("t", b"other", partition=0)
        delivery = await producer.send("t", b"x", partition=1)
        await other
        cluster.answer_all(ApiKey.PRODUCE, produced)
        assert (await delivery).offset == 42


async def test_what_is_not_answered_in_time_is_given_up(cluster, autojump_clock):
    cluster.answer_all(ApiKey.PRODUCE, lambda received: SILENCE)
    settings = ProducerSettings(delivery_timeout_ms=5_000)
    async with make_client(cluster, request_timeout_ms=2_000) as client:
        producer = Producer(client, settings)
        start = trio.current_time()
        async with producer:
            delivery = await producer.send("t", b"x", partition=0)
            with pytest.raises(DeliveryTimeoutError, match="partition 0 of topic 't'"):
                await delivery
        assert trio.current_time() - start == pytest.approx(5, abs=0.1)
    assert len(sent(cluster)) >= 2


async def test_a_full_buffer_frees_itself(cluster, autojump_clock):
    async def slowly(received):
        await trio.sleep(1)
        return produced(received)

    cluster.answer_all(ApiKey.PRODUCE, slowly)
    settings = ProducerSettings(batch_size=100, buffer_memory=250, linger_ms=0)
    async with make_client(cluster) as client, Producer(client, settings) as producer:
        start = trio.current_time()
        for number in range(20):
            await producer.send("t", b"%02d" % number + b"x" * 30, partition=0)
        assert trio.current_time() - start > 5
    assert [values[0][:2] for _, _, _, values in sent(cluster)] == [b"%02d" % n for n in range(20)]


async def test_a_buffer_that_stays_full_is_named(cluster, autojump_clock):
    cluster.answer_all(ApiKey.PRODUCE, lambda received: SILENCE)
    settings = ProducerSettings(batch_size=100, buffer_memory=250)

    async def fill(client: KafkaClient) -> None:
        async with Producer(client, settings) as producer:
            for _ in range(5):
                await producer.send("t", b"x" * 30, partition=0)

    async with make_client(cluster, max_block_ms=3_000) as client:
        with pytest.raises(BufferExhaustedError, match="buffer_memory=250 was full for 3000 ms"):
            await fill(client)


async def test_a_producer_id_is_requested_until_it_is_given(client, cluster, autojump_clock):
    refusals = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3

    def later(received):
        if refusals:
            return InitProducerIdResponse(error_code=refusals.pop())
        return InitProducerIdResponse(producer_id=100, producer_epoch=3)

    cluster.answer_all(ApiKey.INIT_PRODUCER_ID, later)
    async with client, Producer(client) as producer:
        await producer.send("t", b"x", partition=0)
    assert sent(cluster) == [(1, 3, 0, [b"x"])]


async def test_a_producer_id_that_is_refused_fails_the_records_and_is_requested_again(
    client, cluster
):
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    answers = [
        InitProducerIdResponse(producer_id=100, producer_epoch=3),
        InitProducerIdResponse(error_code=refused),
    ]
    cluster.answer_all(ApiKey.INIT_PRODUCER_ID, lambda received: answers.pop())
    async with client, Producer(client) as producer:
        delivery = await producer.send("t", b"x", partition=0)
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await delivery
        assert (await (await producer.send("t", b"y", partition=0))).offset == 42


async def test_a_topic_that_does_not_come_is_named(cluster, autojump_clock):
    cluster.topics["t"] = topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    async with make_client(cluster, max_block_ms=2_000) as client, Producer(client) as producer:
        with pytest.raises(MetadataTimeoutError, match="topic 't' is not in the metadata"):
            await producer.send("t", b"x")


async def test_a_cancelled_wait_for_memory_leaves_the_producer_usable(cluster, autojump_clock):
    cluster.answer_all(ApiKey.PRODUCE, lambda received: SILENCE)
    settings = ProducerSettings(batch_size=100, buffer_memory=150, linger_ms=0)
    async with (
        make_client(cluster, request_timeout_ms=5_000) as client,
        Producer(client, settings) as producer,
    ):
        first = await producer.send("t", b"x" * 30, partition=0)
        with trio.move_on_after(1) as scope:
            await producer.send("t", b"y" * 30, partition=0)
        assert scope.cancelled_caught
        cluster.answer_all(ApiKey.PRODUCE, produced)
        assert (await first).offset == 42
        assert (await (await producer.send("t", b"z" * 30, partition=0))).offset == 42
    assert [values for *_, values in sent(cluster)][-1] == [b"z" * 30]


async def test_without_acks_a_record_is_done_when_it_was_sent(client, cluster):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: None
    async with client, Producer(client, ProducerSettings(acks=0)) as producer:
        assert (await (await producer.send("t", b"x", partition=0))).offset == -1
        await cluster.brokers[1].wait_for_request(ApiKey.PRODUCE)
    assert sent(cluster) == [(1, -1, -1, [b"x"])]
