"""What a broker answers for partitions that others lead, and who is told of their leader (KIP-951).

The real clients here get Metadata only as they were before the leader moved: from nowhere but the
refusal itself can they know where to go.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
import trio
from support.in_process_cluster import SECONDS_MAX, T0, InProcessCluster

from odradek.broker.broker import Broker
from odradek.broker.request.requests import Request
from odradek.client import BatchProducer, Fetcher, KafkaClient, open_connection
from odradek.common.errors import ErrorCode
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata.metadata_waiting import partitions_are_led
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import build_batch

NOW_MS = int(time.time() * 1000)
"""What is older than a week may be deleted at any moment."""
LISTENERS = ("PLAINTEXT", "OTHER")
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
FENCED = ErrorCode.FENCED_LEADER_EPOCH
NOT_TOLD = (-1, -1)


class Cluster(InProcessCluster):
    """Three brokers of this process with two listeners each."""

    listeners = LISTENERS

    def __init__(self) -> None:
        super().__init__()
        self._former: dict[int, Any] = {}
        self._is_frozen = False

    def prepare(self, broker: Broker) -> None:
        broker.dispatcher.use_hooks(on_answer=self._metadata_of_before)

    async def put_in_order(self, *replicas: int) -> None:
        """Have the first of the same replicas preferred; returns when every broker knows.

        The leader stays, in epochs of its own: those are over before a client comes.
        """
        controller = self.brokers[1].controller
        assert await controller.reassign({T0: replicas}) == {T0: None}
        assert await controller.reassignments(None) == {}
        topic = controller.active.context.topic("t")
        assert topic is not None
        epoch = topic.partition_state(0).leader_epoch
        await self.wait_until_shown(lambda now: now.partition_states["t"][0].leader_epoch == epoch)

    def freeze_metadata(self) -> None:
        """From now on clients are told of t what they were told before."""
        self._is_frozen = True

    def _metadata_of_before(self, request: Request, response: Any) -> Any:
        if request.api_key != ApiKey.METADATA:
            return response
        if self._is_frozen:
            return self._former[request.api_version]
        if any(topic.name == "t" and topic.partitions for topic in response.topics):
            self._former[request.api_version] = response
        return response

    async def ask(
        self, broker_id: int, request: Any, version: int, listener: str = "PLAINTEXT"
    ) -> Any:
        with trio.fail_after(SECONDS_MAX):
            async with open_connection(*self.addresses[broker_id, listener]) as connection:
                return await connection.request(request, version=version)


@pytest.fixture
async def cluster(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Cluster]:
    running = Cluster()
    await running.start(nursery, tmp_path)
    yield running
    nursery.cancel_scope.cancel()


# -- requests ---------------------------------------------------------------------------------


def produce(topic: str | bytes, partition: int = 0) -> messages.ProduceRequest:
    make = messages.ProduceRequest
    data = make.PartitionProduceData(
        index=partition, records=bytes(build_batch([(None, b"value", NOW_MS, ())]))
    )
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    return make(
        acks=1,
        timeout_ms=20_000,
        topic_data=[make.TopicProduceData(partition_data=[data], **named)],
    )


def fetch(topic: str | bytes, partition: int = 0, epoch: int = -1) -> messages.FetchRequest:
    make = messages.FetchRequest
    part = make.FetchPartition(
        partition=partition, partition_max_bytes=1 << 20, current_leader_epoch=epoch
    )
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}
    return make(
        max_wait_ms=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[make.FetchTopic(partitions=[part], **named)],
    )


def list_offsets(topic: str, partition: int) -> messages.ListOffsetsRequest:
    make = messages.ListOffsetsRequest
    part = make.ListOffsetsPartition(partition_index=partition, timestamp=-1)
    return make(replica_id=-1, topics=[make.ListOffsetsTopic(name=topic, partitions=[part])])


def offset_for_leader_epoch(topic: str, partition: int) -> messages.OffsetForLeaderEpochRequest:
    make = messages.OffsetForLeaderEpochRequest
    part = make.OffsetForLeaderPartition(partition=partition, leader_epoch=0)
    return make(topics=[make.OffsetForLeaderTopic(topic=topic, partitions=[part])])


def delete_records(topic: str, partition: int) -> messages.DeleteRecordsRequest:
    make = messages.DeleteRecordsRequest
    part = make.DeleteRecordsPartition(partition_index=partition, offset=0)
    return make(timeout_ms=20_000, topics=[make.DeleteRecordsTopic(name=topic, partitions=[part])])


def describe_producers(topic: str, partition: int) -> messages.DescribeProducersRequest:
    make = messages.DescribeProducersRequest
    return make(topics=[make.TopicRequest(name=topic, partition_indexes=[partition])])


def only(answer: Any) -> Any:
    """The one partition in it."""
    (topic,) = getattr(answer, "responses", None) or answer.topics
    (partition,) = getattr(topic, "partition_responses", None) or topic.partitions
    return partition


def reported(answer: Any) -> tuple[tuple[int, int], list[tuple[Any, ...]]]:
    """Leader and epoch, and the nodes."""
    leader = only(answer).current_leader
    nodes = [(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints]
    return (leader.leader_id, leader.leader_epoch), nodes


BY_NAME = {
    "Produce": (produce, 12),
    "Fetch": (fetch, 12),
    "ListOffsets": (list_offsets, 7),
    "OffsetForLeaderEpoch": (offset_for_leader_epoch, 4),
    "DeleteRecords": (delete_records, 2),
    "DescribeProducers": (describe_producers, 0),
}


# -- answers ----------------------------------------------------------------------------------


@pytest.mark.short
async def test_a_broker_without_a_replica_says_that_others_have_the_partition(
    cluster: Cluster,
) -> None:
    await cluster.create(2)
    topic_id = cluster.brokers[3].metadata_cache.topic_id("t")
    assert topic_id is not None
    for api, (make, version) in BY_NAME.items():
        for topic, partition, expected in (
            ("t", 0, NOT_LEADER),
            ("t", 1, UNKNOWN),
            ("missing", 0, UNKNOWN),
        ):
            answer = await cluster.ask(3, make(topic, partition), version)
            assert (api, only(answer).error_code) == (api, expected)
    for by_id, version in ((produce, 13), (fetch, 18)):
        for topic_by_id, partition, expected in (
            (topic_id, 0, NOT_LEADER),
            (topic_id, 1, UNKNOWN),
            (b"\1" * 16, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        ):
            answer = await cluster.ask(3, by_id(topic_by_id, partition), version)
            assert only(answer).error_code == expected
            if expected is not NOT_LEADER:
                assert reported(answer) == (NOT_TOLD, [])


async def test_a_refusal_names_the_leader_and_its_address_on_the_clients_listener(
    cluster: Cluster,
) -> None:
    await cluster.create(2, 1)
    topic_id = cluster.brokers[3].metadata_cache.topic_id("t")
    assert topic_id is not None
    for listener in LISTENERS:
        leader = (2, *cluster.addresses[2, listener], "rack-2")
        for requested in (1, 3):  # one follows, the other has no replica
            for version, topic in ((10, "t"), (13, topic_id)):
                answer = await cluster.ask(requested, produce(topic), version, listener)
                assert only(answer).error_code == NOT_LEADER
                assert reported(answer) == ((2, 0), [leader])
        for version in (16, 18):
            answer = await cluster.ask(3, fetch(topic_id), version, listener)
            assert only(answer).error_code == NOT_LEADER
            assert reported(answer) == ((2, 0), [leader])


async def test_versions_without_a_place_for_it_are_refused_as_before(cluster: Cluster) -> None:
    await cluster.create(2, 1)
    topic_id = cluster.brokers[3].metadata_cache.topic_id("t")
    assert topic_id is not None
    for request, version in (
        (produce("t"), 3),
        (produce("t"), 9),
        (fetch("t"), 4),
        (fetch("t"), 12),
        (fetch(topic_id), 15),
    ):
        answer = await cluster.ask(3, request, version)
        assert only(answer).error_code == NOT_LEADER
        assert reported(answer) == (NOT_TOLD, [])


async def test_who_fetches_in_an_older_epoch_learns_of_the_leader_in_the_present_one(
    cluster: Cluster,
) -> None:
    await cluster.create(2, 1)
    topic_id = cluster.brokers[3].metadata_cache.topic_id("t")
    assert topic_id is not None
    await cluster.put_in_order(1, 2)
    await cluster.elect(1)
    state = cluster.brokers[3].metadata_cache.get_partition_info("t", 0)
    assert state is not None
    assert state.leader_epoch > 0
    leader = (1, *cluster.addresses[1, "PLAINTEXT"], "rack-1")
    for requested in (1, 2):
        answer = await cluster.ask(requested, fetch(topic_id, epoch=0), 17)
        assert only(answer).error_code == FENCED
        assert reported(answer) == ((1, state.leader_epoch), [leader])
    answer = await cluster.ask(1, fetch(topic_id, epoch=state.leader_epoch + 1), 17)
    assert only(answer).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert reported(answer) == (NOT_TOLD, [])


async def test_partitions_of_one_leader_name_its_address_once(cluster: Cluster) -> None:
    (created,) = await cluster.brokers[1].controller.create_topics(
        [TopicCreation("t", assignments=[(0, (2,)), (1, (1,)), (2, (2,))])]
    )
    assert created.error is None
    await cluster.wait_until_shown(partitions_are_led([("t", 3)]))
    request = produce("t")
    for index in (1, 2, 7):
        request.topic_data[0].partition_data += produce("t", index).topic_data[0].partition_data
    answer = await cluster.ask(3, request, 10)
    (topic,) = answer.responses
    assert [
        (each.index, each.error_code, each.current_leader.leader_id)
        for each in topic.partition_responses
    ] == [(0, NOT_LEADER, 2), (1, NOT_LEADER, 1), (2, NOT_LEADER, 2), (7, UNKNOWN, -1)]
    assert sorted(node.node_id for node in answer.node_endpoints) == [1, 2]


# -- clients that have no other way to know ------------------------------------------------------


@pytest.mark.short
async def test_our_producer_and_fetcher_go_to_a_new_leader_without_metadata(
    cluster: Cluster,
) -> None:
    await cluster.create(2, 1)
    await cluster.put_in_order(1, 2)
    async with KafkaClient(cluster.bootstrap(3)) as client:
        producer, fetcher = BatchProducer(client), Fetcher(client)
        assert (await producer.send("t", 0, [(None, b"1", NOW_MS, ())])).base_offset == 0
        fetcher.assign({("t", 0): 0})
        with trio.fail_after(SECONDS_MAX):
            while not await fetcher.poll():
                pass
            cluster.freeze_metadata()
            await cluster.elect(1)
            assert (await producer.send("t", 0, [(None, b"2", NOW_MS, ())])).base_offset == 1
            while not (records := await fetcher.poll()):
                pass
    assert [record.value for record in records] == [b"2"]


async def test_librdkafkas_producer_goes_to_a_new_leader_without_metadata(
    cluster: Cluster,
) -> None:
    await cluster.create(2, 1)
    await cluster.put_in_order(1, 2)
    offsets: list[int] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap(3), "delivery.timeout.ms": SECONDS_MAX * 1000}
    )

    def send() -> None:
        producer.produce(
            "t",
            b"value",
            partition=0,
            on_delivery=lambda error, sent: offsets.append(sent.offset()),
        )
        assert producer.flush(SECONDS_MAX) == 0

    await trio.to_thread.run_sync(send)
    cluster.freeze_metadata()
    await cluster.elect(1)
    await trio.to_thread.run_sync(send)
    assert offsets == [0, 1]


async def test_librdkafkas_consumer_goes_to_a_new_leader_without_metadata(
    cluster: Cluster,
) -> None:
    await cluster.create(2, 1)
    await cluster.put_in_order(1, 2)
    settings = {"bootstrap.servers": cluster.bootstrap(3), "group.id": "g"}
    consumer = confluent_kafka.Consumer(settings)

    def read() -> bytes | None:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"nothing came within {SECONDS_MAX} s"
        assert message.error() is None, message.error()
        return message.value()

    try:
        await cluster.ask(2, produce("t"), 10)
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        assert await trio.to_thread.run_sync(read) == b"value"
        cluster.freeze_metadata()
        await cluster.elect(1)
        answer = await cluster.ask(1, produce("t"), 10)
        assert only(answer).error_code == ErrorCode.NONE
        assert await trio.to_thread.run_sync(read) == b"value"
    finally:
        await trio.to_thread.run_sync(consumer.close)
