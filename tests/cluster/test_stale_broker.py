"""A broker that the controller cannot reach: whoever knows only it gets through all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
import trio
from kafka import KafkaProducer
from support.in_process_cluster import SECONDS_MAX, T0, InProcessCluster

from odradek.broker.broker import Broker
from odradek.broker.request.requests import Request
from odradek.common.errors import ErrorCode
from odradek.common.live_broker import EndPoint
from odradek.controller.channel import codec as wire
from odradek.metadata.metadata_cache import MetadataSnapshot
from odradek.metadata.metadata_waiting import topics_are_gone
from odradek.protocol.api_keys import ApiKey

STALE = 3
"""The broker that is held on what it knows; the first is the controller."""


class HeldLink:
    """The controller's connection to a broker, on which requests wait until they may go."""

    def __init__(self, connection: Any, wait: Callable[[], Awaitable[None]]) -> None:
        self._connection = connection
        self._wait = wait

    async def request(self, request: Any, **how: Any) -> Any:
        await self._wait()
        return await self._connection.request(request, **how)


class Cluster(InProcessCluster):
    """Three brokers of this process, and what they answered to clients."""

    def __init__(self) -> None:
        super().__init__()
        self._may_go = trio.Event()
        self._may_go.set()
        self._answers: list[tuple[int, ApiKey, ErrorCode]] = []
        self._answered = trio.Event()

    def prepare(self, broker: Broker) -> None:
        def on_answer(request: Request, response: Any) -> Any:
            self._note(broker.broker_id, request.api_key, response)
            return response

        broker.dispatcher.use_hooks(on_answer=on_answer)
        if broker.broker_id == 1:
            self._put_hold_on(broker)

    @property
    def stale_address(self) -> str:
        return self.bootstrap(STALE)

    # -- what the stale broker does not hear ------------------------------------------------

    def _put_hold_on(self, controller: Broker) -> None:
        links = controller.links
        to_endpoint = links.to_endpoint

        @asynccontextmanager
        async def holding(
            broker_id: int,
            endpoint: EndPoint,
            versions: Mapping[int, int],
            client_id: str | None = None,
        ) -> AsyncIterator[Any]:
            async def wait() -> None:
                if versions is wire.VERSIONS and address == self.addresses.get(
                    (STALE, "PLAINTEXT")
                ):
                    await self._may_go.wait()

            address = (endpoint.host, endpoint.port)
            async with to_endpoint(broker_id, endpoint, versions, client_id) as connection:
                yield HeldLink(connection, wait)

        links.to_endpoint = holding  # type: ignore[method-assign]  # what a slow network would do

    def hold(self) -> None:
        self._may_go = trio.Event()

    def release(self) -> None:
        self._may_go.set()

    # -- topics ------------------------------------------------------------------------------

    async def delete(self) -> None:
        topic = self.controller.active.context.topic("t")
        assert topic is not None
        await self.controller.delete_topics([topic.topic_id])
        await self.wait_until_shown(topics_are_gone(["t"]))

    async def move_leader(self, *replicas: int) -> None:
        """Have the first of the same replicas lead."""
        assert await self.controller.reassign({T0: replicas}) == {T0: None}
        await self.elect(replicas[0])

    def informed(self) -> list[Broker]:
        everybody = self._may_go.is_set()
        return [each for each in self.brokers.values() if everybody or each.broker_id != STALE]

    def stale_leader(self) -> int | None:
        """Who leads, as the stale broker knows it."""
        return leader_in(self.brokers[STALE].metadata_cache.snapshot)

    # -- what was answered ---------------------------------------------------------------------

    def _note(self, broker_id: int, api_key: ApiKey, response: Any) -> None:
        codes: list[int] = []
        if api_key == ApiKey.METADATA:
            codes = [topic.error_code for topic in response.topics if topic.name == "t"]
        elif api_key == ApiKey.PRODUCE:
            codes = [
                each.error_code
                for topic in response.responses
                for each in topic.partition_responses
            ]
        elif api_key == ApiKey.FETCH:
            codes = [each.error_code for topic in response.responses for each in topic.partitions]
        if codes:
            self._answers += [(broker_id, api_key, ErrorCode(code)) for code in codes]
            self._answered.set()
            self._answered = trio.Event()

    async def wait_for_answer(
        self, broker_ids: Collection[int], api_key: ApiKey, *codes: ErrorCode, after: int = -1
    ) -> int:
        """Until one of the brokers has given one of these answers; its number among all."""
        with trio.fail_after(SECONDS_MAX):
            while True:
                for number, (who, what, code) in enumerate(self._answers):
                    if number > after and who in broker_ids and what == api_key and code in codes:
                        return number
                await self._answered.wait()

    def answers_after(self, number: int, api_key: ApiKey) -> list[ErrorCode]:
        return [code for _, what, code in self._answers[number + 1 :] if what == api_key]


def leader_in(snapshot: MetadataSnapshot) -> int | None:
    found = snapshot.partition_states.get(T0.topic, {}).get(T0.partition)
    return None if found is None else found.leader


@pytest.fixture
async def cluster(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Cluster]:
    running = Cluster()
    await running.start(nursery, tmp_path)
    yield running
    running.release()
    nursery.cancel_scope.cancel()


# -- real clients, which block: each call runs in a thread --------------------------------


def produce_with_kafka_python(address: str) -> int:
    producer = KafkaProducer(bootstrap_servers=address, acks=1, retry_backoff_ms=50)
    try:
        return int(producer.send("t", b"value", partition=0).get(SECONDS_MAX).offset)
    finally:
        producer.close()


def produce_with_confluent(address: str) -> int:
    offsets: list[int] = []
    settings = {"bootstrap.servers": address, "acks": 1, "retry.backoff.ms": 50}
    producer = confluent_kafka.Producer(settings)
    producer.produce(
        "t", b"value", partition=0, on_delivery=lambda error, sent: offsets.append(sent.offset())
    )
    assert producer.flush(SECONDS_MAX) == 0
    return offsets[0]


def consume_with_confluent(address: str) -> bytes:
    settings = {"bootstrap.servers": address, "group.id": "g", "reconnect.backoff.ms": 10}
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        message = consumer.poll(SECONDS_MAX)
        while message is not None and message.error() is not None:
            message = consumer.poll(SECONDS_MAX)
        assert message is not None
        return bytes(message.value())
    finally:
        consumer.close()


class Running:
    """A client's call under way in a thread; the result is there once its nursery has closed."""

    def __init__(self, nursery: trio.Nursery, call: Callable[[str], Any], address: str) -> None:
        self.results: list[Any] = []
        nursery.start_soon(self._run, call, address)

    async def _run(self, call: Callable[[str], Any], address: str) -> None:
        self.results.append(await trio.to_thread.run_sync(call, address))


producers = pytest.mark.parametrize(
    "produce",
    [produce_with_kafka_python, produce_with_confluent],
    ids=["kafka-python", "confluent"],
)


@producers
async def test_a_leader_that_has_not_heard_of_it_refuses_until_it_has(
    cluster: Cluster, produce: Callable[[str], int]
) -> None:
    await cluster.create(1, STALE)
    cluster.hold()
    await cluster.move_leader(STALE, 1)
    assert cluster.stale_leader() == 1
    async with trio.open_nursery() as nursery:
        client = Running(nursery, produce, cluster.stale_address)
        refused = await cluster.wait_for_answer(
            {STALE}, ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
        await cluster.wait_for_answer({1, 2, 3}, ApiKey.METADATA, ErrorCode.NONE, after=refused)
        assert not client.results
        cluster.release()
    assert client.results == [0]
    # It leads before it is told who leads: Kafka's controller sends LeaderAndIsr first, too.
    await cluster.wait_until_shown(lambda snapshot: leader_in(snapshot) == STALE)
    assert cluster.answers_after(refused, ApiKey.PRODUCE)[-1] is ErrorCode.NONE


async def test_a_client_of_a_broker_that_names_a_former_leader_finds_the_present_one(
    cluster: Cluster,
) -> None:
    """The hold lasts: another broker tells it. kafka-python asks another before it sends."""
    await cluster.create(1, 2)
    cluster.hold()
    await cluster.move_leader(2, 1)
    assert cluster.stale_leader() == 1
    async with trio.open_nursery() as nursery:
        client = Running(nursery, produce_with_confluent, cluster.stale_address)
        await cluster.wait_for_answer({1}, ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert client.results == [0]
    assert cluster.stale_leader() == 1


async def test_a_client_of_a_broker_that_has_not_heard_of_a_topic_tries_again(
    cluster: Cluster,
) -> None:
    """kafka-python asks any broker of the cluster, so it may never ask the stale one."""
    cluster.hold()
    await cluster.create(1, 2)
    async with trio.open_nursery() as nursery:
        client = Running(nursery, produce_with_confluent, cluster.stale_address)
        await cluster.wait_for_answer(
            {STALE}, ApiKey.METADATA, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        cluster.release()
    assert client.results == [0]


async def test_a_consumer_of_a_broker_that_knows_the_former_topic_of_the_name_reads_the_new_one(
    cluster: Cluster,
) -> None:
    await cluster.create(1, 2)
    cluster.hold()
    await cluster.delete()
    await cluster.create(2, 1)
    assert await trio.to_thread.run_sync(produce_with_confluent, cluster.bootstrap(2)) == 0
    assert cluster.stale_leader() == 1
    async with trio.open_nursery() as nursery:
        client = Running(nursery, consume_with_confluent, cluster.stale_address)
        await cluster.wait_for_answer(
            {1}, ApiKey.FETCH, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
        cluster.release()
    assert client.results == [b"value"]
