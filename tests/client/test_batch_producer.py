"""The plain producer against brokers that refuse, move, hang and forget."""

from __future__ import annotations

import pytest
import trio
from support.client_parts import partition, topic
from support.scripted_cluster import SILENCE, Received, ScriptedCluster

from odradek.client import (
    BatchProducer,
    DisconnectedError,
    MetadataTimeoutError,
    PeerProtocolError,
    ProduceResult,
    RequestTimeoutError,
)
from odradek.client.producer.producer_ids import ProducerIds, Sequence
from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import NO_LEADER
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.messages import InitProducerIdResponse, ProduceResponse
from odradek.protocol.records import RecordBatch, iter_records

TOPIC_ID = bytes(15) + b"\7"
RECORD = (b"key", b"value", 1_700_000_000_000, [("h", b"1")])


@pytest.fixture
def cluster(nursery) -> ScriptedCluster:
    cluster = ScriptedCluster(nursery, 1, 2)
    lead(cluster, 1, epoch=0)
    cluster.answer_all(ApiKey.PRODUCE, lambda received: produced(received, base_offset=42))
    return cluster


def lead(cluster: ScriptedCluster, leader: int, epoch: int) -> None:
    """Let a node lead the one partition of topic t, as Metadata answers it."""
    cluster.topics["t"] = topic("t", partition(0, leader, epoch), topic_id=TOPIC_ID)


def produced(
    received: Received,
    error: int = 0,
    base_offset: int = 0,
    leader: tuple[int, int] = (-1, -1),
    index: int = 0,
) -> ProduceResponse:
    current = ProduceResponse.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    answer = ProduceResponse.PartitionProduceResponse(
        index=index, error_code=error, base_offset=base_offset, current_leader=current
    )
    asked = received.body.topic_data[0]
    of_topic = ProduceResponse.TopicProduceResponse(
        name=asked.name, topic_id=asked.topic_id, partition_responses=[answer]
    )
    endpoints = []
    if leader[0] >= 0:
        endpoints.append(
            ProduceResponse.NodeEndpoint(
                node_id=leader[0], host=f"broker-{leader[0]}", port=9092, rack=None
            )
        )
    return ProduceResponse(responses=[of_topic], node_endpoints=endpoints)


def batches(cluster: ScriptedCluster) -> list[tuple[int, RecordBatch]]:
    """The node and the batch of each Produce that came."""
    return [
        (node_id, RecordBatch(bytes(request.topic_data[0].partition_data[0].records)))
        for node_id, broker in cluster.brokers.items()
        for request in broker.requests_of(ApiKey.PRODUCE)
    ]


async def test_a_batch_goes_to_the_leader_and_its_offset_comes_back(make_client, cluster):
    async with make_client() as client:
        result = await BatchProducer(client).send("t", 0, [RECORD, (None, None, 5, ())])
    assert result == ProduceResult(base_offset=42)
    ((node_id, batch),) = batches(cluster)
    assert node_id == 1
    request = cluster.brokers[1].requests_of(ApiKey.PRODUCE)[0]
    assert request.acks == -1
    assert request.topic_data[0].topic_id == TOPIC_ID
    read = [(r.key, r.value, r.timestamp, r.headers) for r in iter_records(batch)]
    assert read == [(b"key", b"value", 1_700_000_000_000, [("h", b"1")]), (None, None, 5, [])]


async def test_a_batch_is_compressed_if_requested(make_client, cluster):
    async with make_client() as client:
        await BatchProducer(client, compression=Compression.GZIP).send("t", 0, [RECORD])
    assert batches(cluster)[0][1].compression is Compression.GZIP


async def test_after_not_leader_the_metadata_is_refreshed_and_the_new_leader_gets_it(
    make_client, cluster, autojump_clock
):
    def moved(received):
        lead(cluster, 2, epoch=1)
        return produced(received, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    cluster.brokers[1].answers[ApiKey.PRODUCE] = moved
    async with make_client() as client:
        before = client.metadata.update_version
        result = await BatchProducer(client).send("t", 0, [RECORD])
        assert client.metadata.update_version > before
    assert result.base_offset == 42
    assert [node_id for node_id, _ in batches(cluster)][-1] == 2


async def test_a_leader_named_in_the_answer_gets_it_without_a_refresh(
    make_client, cluster, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: produced(
        received, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 1)
    )
    async with make_client() as client:
        # Metadata goes on to name the old leader.
        assert (await BatchProducer(client).send("t", 0, [RECORD])).base_offset == 42
    assert [node_id for node_id, _ in batches(cluster)] == [1, 2]


async def test_a_partition_without_a_leader_is_waited_for(make_client, cluster, autojump_clock):
    lead(cluster, NO_LEADER, epoch=1)

    async def elect():
        await trio.sleep(2)
        lead(cluster, 2, epoch=2)

    async with make_client() as client, trio.open_nursery() as electing:
        electing.start_soon(elect)
        await BatchProducer(client).send("t", 0, [RECORD])
    assert [node_id for node_id, _ in batches(cluster)] == [2]


async def test_a_partition_that_stays_without_a_leader_is_given_up(
    make_client, cluster, autojump_clock
):
    lead(cluster, NO_LEADER, epoch=1)
    async with make_client() as client:
        with pytest.raises(MetadataTimeoutError, match="had no leader for 3000 ms"):
            await BatchProducer(client, delivery_timeout_ms=3_000).send("t", 0, [RECORD])


async def test_a_batch_is_sent_again_after_the_connection_was_lost(
    make_client, cluster, autojump_clock
):
    async def die_once(received):
        cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda again: produced(again, base_offset=7)
        await cluster.brokers[1].disconnect()
        return SILENCE

    cluster.brokers[1].answers[ApiKey.PRODUCE] = die_once
    async with make_client() as client:
        assert (await BatchProducer(client).send("t", 0, [RECORD])).base_offset == 7
    assert len(batches(cluster)) == 2


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, 999])
async def test_an_error_that_will_not_pass_is_raised_at_once(make_client, cluster, code):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: produced(received, code)
    async with make_client() as client:
        with pytest.raises(KafkaError, match="partition 0 of topic 't'") as raised:
            await BatchProducer(client).send("t", 0, [RECORD])
    expected = ErrorCode.UNKNOWN_SERVER_ERROR if code == 999 else code
    assert raised.value.code == expected
    assert len(batches(cluster)) == 1


async def test_an_error_that_does_not_pass_is_raised_at_the_end_of_the_time(
    make_client, cluster, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: produced(
        received, ErrorCode.NOT_ENOUGH_REPLICAS
    )
    async with make_client() as client:
        start = trio.current_time()
        with pytest.raises(KafkaError) as raised:
            await BatchProducer(client, delivery_timeout_ms=10_000).send("t", 0, [RECORD])
        assert raised.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert 8 < trio.current_time() - start <= 10
    # With a backoff that doubles up to a second, not in a loop without a pause.
    assert 10 <= len(batches(cluster)) <= 15


async def test_a_broker_that_never_answers_is_given_up_at_the_end_of_the_time(
    make_client, cluster, autojump_clock
):
    cluster.answer_all(ApiKey.PRODUCE, lambda received: SILENCE)
    async with make_client(request_timeout_ms=2_000) as client:
        start = trio.current_time()
        with pytest.raises(RequestTimeoutError):
            await BatchProducer(client, delivery_timeout_ms=5_000).send("t", 0, [RECORD])
        assert trio.current_time() - start == pytest.approx(5, abs=0.5)


async def test_without_acks_nothing_is_waited_for(make_client, cluster):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: None
    async with make_client() as client:
        assert await BatchProducer(client, acks=0).send("t", 0, [RECORD]) == ProduceResult()
        await cluster.brokers[1].wait_for_request(ApiKey.PRODUCE)


async def test_a_topic_without_an_id_is_named(make_client, cluster):
    cluster.topics["t"] = topic("t", partition(0, leader=1))
    async with make_client() as client:
        await BatchProducer(client).send("t", 0, [RECORD])
    (received,) = [r for r in cluster.brokers[1].requests if r.api_key == ApiKey.PRODUCE]
    assert received.version == 12
    assert received.body.topic_data[0].name == "t"


async def test_an_answer_for_another_partition_is_an_error(make_client, cluster):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: produced(received, index=3)
    async with make_client() as client:
        with pytest.raises(PeerProtocolError, match=r"was answered for \[3\]"):
            await BatchProducer(client).send("t", 0, [RECORD])


@pytest.mark.parametrize(("acks", "idempotent"), [(2, False), (-2, False), (1, True), (0, True)])
async def test_acks_that_make_no_sense_are_refused(make_client, acks, idempotent):
    with pytest.raises(ValueError, match="acks"):
        BatchProducer(make_client(), acks=acks, idempotent=idempotent)


# --- Idempotence ----------------------------------------------------------------------------


@pytest.fixture
def ids(cluster):
    """BatchProducer ids 100, 101 and so on; tells how many were given."""
    given: list[int] = []

    def give(received):
        given.append(100 + len(given))
        return InitProducerIdResponse(producer_id=given[-1], producer_epoch=3)

    cluster.answer_all(ApiKey.INIT_PRODUCER_ID, give)
    return given


def stamps(cluster: ScriptedCluster) -> list[tuple[int, int, int]]:
    return [(b.producer_id, b.producer_epoch, b.base_sequence) for _, b in batches(cluster)]


async def test_an_idempotent_producer_numbers_its_records(make_client, cluster, ids):
    async with make_client() as client:
        producer = BatchProducer(client, idempotent=True)
        await producer.send("t", 0, [RECORD] * 3)
        await producer.send("t", 0, [RECORD])
    assert stamps(cluster) == [(100, 3, 0), (100, 3, 3)]
    assert ids == [100]


async def test_a_batch_sent_again_has_the_same_number(make_client, cluster, ids, autojump_clock):
    async def die_once(received):
        cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda again: produced(again, base_offset=7)
        await cluster.brokers[1].disconnect()
        return SILENCE

    cluster.brokers[1].answers[ApiKey.PRODUCE] = die_once
    async with make_client() as client:
        await BatchProducer(client, idempotent=True).send("t", 0, [RECORD])
    assert stamps(cluster) == [(100, 3, 0)] * 2


async def test_a_batch_that_was_there_already_is_a_success(make_client, cluster, ids):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: produced(
        received, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, base_offset=-1
    )
    async with make_client() as client:
        assert (
            await BatchProducer(client, idempotent=True).send("t", 0, [RECORD])
        ).base_offset == -1


async def test_after_an_unknown_outcome_the_partition_gets_another_producer_id(
    make_client, cluster, ids, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: SILENCE
    async with make_client(request_timeout_ms=1_000) as client:
        producer = BatchProducer(client, idempotent=True, delivery_timeout_ms=1_000)
        with pytest.raises(DisconnectedError):
            await producer.send("t", 0, [RECORD])
        cluster.answer_all(ApiKey.PRODUCE, produced)
        await producer.send("t", 0, [RECORD])
        await producer.send("t", 0, [RECORD])
    assert stamps(cluster)[-2:] == [(101, 3, 0), (101, 3, 1)]


async def test_a_cancelled_batch_counts_as_an_unknown_outcome(
    make_client, cluster, ids, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.PRODUCE] = lambda received: SILENCE
    async with make_client() as client:
        producer = BatchProducer(client, idempotent=True)
        with trio.move_on_after(1):
            await producer.send("t", 0, [RECORD])
        cluster.answer_all(ApiKey.PRODUCE, produced)
        client.network.disconnect(1)
        await producer.send("t", 0, [RECORD])
    assert stamps(cluster)[-1] == (101, 3, 0)


async def test_the_batches_of_a_partition_are_sent_one_after_the_other(
    make_client, cluster, ids, autojump_clock
):
    at_once = most = 0

    async def slowly(received):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await trio.sleep(1)
        at_once -= 1
        return produced(received)

    cluster.brokers[1].answers[ApiKey.PRODUCE] = slowly
    async with make_client() as client, trio.open_nursery() as sending:
        producer = BatchProducer(client, idempotent=True)
        for _ in range(3):
            sending.start_soon(producer.send, "t", 0, [RECORD])
    assert most == 1
    assert sorted(stamp[2] for stamp in stamps(cluster)) == [0, 1, 2]


async def test_a_producer_id_that_cannot_be_given_yet_is_requested_again(
    make_client, cluster, ids, autojump_clock
):
    give = cluster.brokers[1].answers[ApiKey.INIT_PRODUCER_ID]
    refusals = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3

    def later(received):
        if refusals:
            return InitProducerIdResponse(error_code=refusals.pop())
        return give(received)

    cluster.answer_all(ApiKey.INIT_PRODUCER_ID, later)
    async with make_client() as client:
        await BatchProducer(client, idempotent=True).send("t", 0, [RECORD])
    assert stamps(cluster) == [(100, 3, 0)]


async def test_a_producer_id_that_is_refused_is_an_error(make_client, cluster):
    cluster.answer_all(
        ApiKey.INIT_PRODUCER_ID,
        lambda received: InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    )
    async with make_client() as client:
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await BatchProducer(client, idempotent=True).send("t", 0, [RECORD])


async def test_sequences_begin_again_after_the_largest(make_client, cluster, ids):
    async with make_client() as client:
        numbers = ProducerIds(client)
        largest = 0x7FFFFFFF
        async with numbers.sequence("t", 0, largest) as sequence:
            assert sequence == Sequence(100, 3, 0)
        async with numbers.sequence("t", 0, 2) as sequence:
            assert sequence.next_sequence == largest
        async with numbers.sequence("t", 0, 1) as sequence:
            assert sequence.next_sequence == 1


async def test_partitions_are_numbered_each_for_itself(make_client, cluster, ids):
    async with make_client() as client:
        numbers = ProducerIds(client)
        for index in (0, 1):
            async with numbers.sequence("t", index, 5) as sequence:
                assert sequence == Sequence(100, 3, 0)
