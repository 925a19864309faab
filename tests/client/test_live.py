"""The client with a real broker, ours or (ODRADEK_TEST_BOOTSTRAP) any other Kafka."""

from __future__ import annotations

import re
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.client import (
    Admin,
    BatchProducer,
    ClientSettings,
    DisconnectedError,
    Fetcher,
    KafkaClient,
    open_connection,
)
from odradek.client.admin.admin import BROKER_RESOURCE, NewTopic
from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.messages import ApiVersionsRequest, MetadataRequest

pytestmark = pytest.mark.clients

TIMESTAMP_MS = int(time.time() * 1000)
"""What is older than a week may be deleted at any moment."""
PATIENT_SECONDS = 120


def numbered(first: int, count: int) -> list[tuple[bytes, bytes, int, tuple[()]]]:
    return [(b"k", b"%d" % n, TIMESTAMP_MS + n, ()) for n in range(first, first + count)]


async def fetch_values(client: KafkaClient, topic: str, count: int) -> list[bytes | None]:
    """The first so many values of partition 0."""
    fetcher = Fetcher(client)
    fetcher.assign({(topic, 0): 0})
    values: list[bytes | None] = []
    with trio.fail_after(PATIENT_SECONDS):
        while len(values) < count:
            values += [record.value for record in await fetcher.poll()]
    return values


async def test_records_produced_are_fetched(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 2, 1)])
        producer = BatchProducer(client)
        first = await producer.send(topic, 0, numbered(0, 3))
        second = await producer.send(topic, 0, numbered(3, 2))
        other = await producer.send(topic, 1, [(None, b"other", TIMESTAMP_MS, [("h", b"1")])])
        assert (first.base_offset, second.base_offset, other.base_offset) == (0, 3, 0)
        assert await fetch_values(client, topic, 5) == [b"%d" % n for n in range(5)]
        fetcher = Fetcher(client)
        fetcher.assign({(topic, 0): 4, (topic, 1): 0})
        records = []
        with trio.fail_after(PATIENT_SECONDS):
            while len(records) < 2:
                records += await fetcher.poll()
        assert sorted((r.partition, r.offset, r.value, r.headers) for r in records) == [
            (0, 4, b"4", []),
            (1, 0, b"other", [("h", b"1")]),
        ]


@pytest.mark.parametrize("compression", Compression)
async def test_compressed_batches_come_back(broker, topic, compression):
    async with KafkaClient(broker.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        await BatchProducer(client, compression=compression).send(topic, 0, numbered(0, 50))
        assert await fetch_values(client, topic, 50) == [b"%d" % n for n in range(50)]


async def test_a_topic_is_created_by_producing_to_it(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await BatchProducer(client).send(topic, 0, numbered(0, 1))
        assert await fetch_values(client, topic, 1) == [b"0"]


async def test_an_idempotent_producer_is_accepted_batch_after_batch(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 2, 1)])
        producer = BatchProducer(client, idempotent=True)
        for batch in range(4):
            for partition in (0, 1):
                result = await producer.send(topic, partition, numbered(5 * batch, 5))
                assert result.base_offset == 5 * batch


async def test_offsets_are_reported(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        await BatchProducer(client).send(topic, 0, numbered(0, 10))
        fetcher = Fetcher(client)
        key = (topic, 0)
        assert (await fetcher.list_offsets({key: EARLIEST_TIMESTAMP}))[key].offset == 0
        assert (await fetcher.list_offsets({key: LATEST_TIMESTAMP}))[key].offset == 10
        found = (await fetcher.list_offsets({key: TIMESTAMP_MS + 7}))[key]
        assert (found.offset, found.timestamp) == (7, TIMESTAMP_MS + 7)
        fetcher.assign({key: 11})
        with pytest.raises(KafkaError) as raised:
            await fetcher.poll()
        assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_the_administration_that_the_page_shows_works(broker, topic):
    page = (Path(__file__).parents[2] / "docs/client.md").read_text()
    (example,) = re.findall(r"## Administration\n.*?```python\n(.*?)```", page, re.DOTALL)
    body = textwrap.indent(example.replace('"orders"', repr(topic)), "    ")
    names: dict[str, Any] = {}
    exec(f"async def example(client):\n{body}\n    return leaders", names)
    async with KafkaClient(broker.bootstrap) as client:
        leaders = await names["example"](client)
        assert set(leaders) == {0, 1, 2}
        assert set(leaders.values()) <= set(client.cluster.nodes)


async def test_topics_are_described_without_creating_any(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(topic, 2, 1)])
        await admin.wait_for_topics([topic])
        missing = f"{topic}-missing"
        found = await admin.describe_topics([topic, missing])
        assert {name: each.error_code for name, each in found.items()} == {
            topic: ErrorCode.NONE,
            missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert [each.leader_id is None for each in found[topic].partitions.values()] == [False] * 2
        everything = await admin.describe_topics()
        assert topic in everything
        assert missing not in everything
        assert await admin.describe_topics([]) == {}
        await admin.create_partitions(topic, 4)
        await admin.wait_for_topics([topic], partitions_min=4)
        assert len((await admin.describe_topics([topic]))[topic].partitions) == 4


async def test_only_the_settings_of_the_topic_itself_are_described(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(topic, 1, 1, configs={"retention.ms": "123456"})])
        assert await admin.describe_configs(topic, own_only=True) == {"retention.ms": "123456"}


async def test_a_cluster_is_administered(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        admin = Admin(client)
        description = await admin.describe_cluster()
        assert description.controller_id in {node.id for node in description.nodes}
        new = NewTopic(topic, 2, 1, configs={"retention.ms": "123456"})
        await admin.create_topics([new])
        with pytest.raises(KafkaError) as raised:
            await admin.create_topics([new])
        assert raised.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert (await admin.describe_configs(topic))["retention.ms"] == "123456"
        await admin.alter_configs(topic, {"retention.ms": None, "cleanup.policy": "compact"})
        configs = await admin.describe_configs(topic)
        assert configs["retention.ms"] != "123456"
        assert configs["cleanup.policy"] == "compact"
        await admin.create_partitions(topic, 4)
        info = await client.wait_for_topic(topic, partition=3)
        assert set(info.partitions) == {0, 1, 2, 3}
        assert topic in await admin.list_topics()
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()
        with pytest.raises(KafkaError) as raised:
            await admin.delete_topics([topic])
        assert raised.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_brokers_own_settings_are_requested_of_that_broker(broker):
    async with KafkaClient(broker.bootstrap) as client:
        cluster = await client.refresh_metadata()
        node_id = min(cluster.nodes)
        settings = await Admin(client).describe_configs(str(node_id), BROKER_RESOURCE)
        assert settings["broker.id"] == str(node_id) or settings["node.id"] == str(node_id)


async def test_a_partition_placed_by_hand_is_where_it_was_put(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        cluster = await client.refresh_metadata()
        node_id = min(cluster.nodes)
        await Admin(client).create_topics([NewTopic(topic, assignments={0: [node_id]})])
        info = await client.wait_for_topic(topic)
        assert info.partitions[0].replicas == info.partitions[0].isr == (node_id,)


async def test_a_topic_created_anew_under_its_name_is_used(broker, topic):
    settings = ClientSettings(allow_auto_create_topics=False)
    async with KafkaClient(broker.bootstrap, settings) as client:
        admin, producer = Admin(client), BatchProducer(client)
        await admin.create_topics([NewTopic(topic, 1, 1)])
        await producer.send(topic, 0, numbered(0, 3))
        old = (await client.wait_for_topic(topic)).topic_id
        await admin.delete_topics([topic])
        await admin.create_topics([NewTopic(topic, 1, 1)])
        assert (await producer.send(topic, 0, numbered(0, 1))).base_offset == 0
        assert (await client.wait_for_topic(topic)).topic_id != old


async def test_requests_of_one_connection_are_answered_each(broker):
    host, _, port = broker.bootstrap.rpartition(":")
    async with open_connection(host, int(port)) as connection:
        answers: list[type] = []

        async def ask(request) -> None:
            answers.append(type(await connection.request(request)).__name__)

        async with trio.open_nursery() as asking:
            for _ in range(10):
                asking.start_soon(ask, MetadataRequest(topics=[]))
                asking.start_soon(
                    ask, ApiVersionsRequest(client_software_name="a", client_software_version="1")
                )
    assert sorted(answers) == ["ApiVersionsResponse"] * 10 + ["MetadataResponse"] * 10


async def test_a_client_goes_on_after_its_broker_was_killed_and_came_back(
    start_broker, tmp_path, topic
):
    process = start_broker(tmp_path / "data")
    async with KafkaClient(process.bootstrap) as client:
        producer = BatchProducer(client)
        await producer.send(topic, 0, numbered(0, 3))
        version = client.metadata.update_version
        await trio.to_thread.run_sync(process.kill)
        sent = []

        async def send() -> None:
            sent.append(await producer.send(topic, 0, numbered(3, 2)))

        async with trio.open_nursery() as sending:
            sending.start_soon(send)
            await trio.testing.wait_all_tasks_blocked(0.2)
            assert not sent
            await trio.to_thread.run_sync(process.start)
        assert sent[0].base_offset == 3
        assert client.metadata.update_version > version
        assert await fetch_values(client, topic, 5) == [b"%d" % n for n in range(5)]


async def test_a_request_in_flight_fails_when_its_broker_is_killed(start_broker, topic):
    process = start_broker()
    async with KafkaClient(process.bootstrap) as client:
        await BatchProducer(client).send(topic, 0, numbered(0, 1))
        fetcher = Fetcher(client, max_wait_ms=20_000)
        fetcher.assign({(topic, 0): 1})
        version = client.metadata.update_version
        with trio.fail_after(PATIENT_SECONDS):
            async with trio.open_nursery() as polling:
                polling.start_soon(fetcher.poll)
                node_id = min(client.cluster.nodes)
                while client.network.in_flight_count(node_id) == 0:
                    await trio.testing.wait_all_tasks_blocked()
                await trio.to_thread.run_sync(process.kill)
        await trio.to_thread.run_sync(process.start)
        await client.wait_for_metadata(version)


async def test_nobody_at_the_bootstrap_address_is_reported_in_time():
    async with KafkaClient("127.0.0.1:1") as client:
        with pytest.raises(DisconnectedError):
            await client.network.send(client.cluster.nodes[-1], MetadataRequest(topics=None))


async def test_quotas_are_set_described_and_removed(broker: Any) -> None:
    entity = {"user": "quota-user", "client-id": None}
    async with KafkaClient(broker.bootstrap) as client:
        admin = Admin(client)
        await admin.alter_client_quotas(entity, {"producer_byte_rate": 2048})
        assert await admin.describe_client_quotas(entity, strict=True) == [
            (entity, {"producer_byte_rate": 2048})
        ]
        assert (entity, {"producer_byte_rate": 2048}) in await admin.describe_client_quotas(
            any_named=["user"]
        )
        with pytest.raises(KafkaError, match="Quota producer_byte_rate must be greater than 0"):
            await admin.alter_client_quotas(entity, {"producer_byte_rate": -1})
        await admin.alter_client_quotas(entity, {"producer_byte_rate": None})
        assert await admin.describe_client_quotas(entity) == []
