"""aiokafka as a user of the broker. Its calls are asyncio's, so each test runs its own loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    for_code,
)
from aiokafka.structs import ConsumerRecord, OffsetAndMetadata

pytestmark = pytest.mark.clients

COMPRESSIONS = [None, "gzip", "snappy", "lz4", "zstd"]
READ_SECONDS_MAX = 100.0
DAY_MS = 86_400_000


@asynccontextmanager
async def admin_client(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def create(bootstrap: str, topic: str, partitions: int = 1, **configs: str) -> None:
    async with admin_client(bootstrap) as admin:
        requested = NewTopic(topic, partitions, 1, topic_configs=configs)
        response = await admin.create_topics([requested])
        ((_, code, _),) = response.topic_errors
        assert code == 0


@asynccontextmanager
async def started_producer(bootstrap: str, **settings: object) -> AsyncIterator[AIOKafkaProducer]:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        yield producer


@asynccontextmanager
async def consumer_at_start(
    bootstrap: str, topic: str, **settings: object
) -> AsyncIterator[AIOKafkaConsumer]:
    settings = {"auto_offset_reset": "earliest", **settings}
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **settings)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer
    finally:
        await consumer.stop()


@asynccontextmanager
async def group_consumer(
    bootstrap: str, topic: str, **settings: object
) -> AsyncIterator[AIOKafkaConsumer]:
    settings = {
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 60_000,
        **settings,
    }
    consumer = AIOKafkaConsumer(
        topic, group_id=f"group-{topic}", bootstrap_servers=bootstrap, **settings
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def read(consumer: AIOKafkaConsumer, count: int) -> list[ConsumerRecord]:
    async with asyncio.timeout(READ_SECONDS_MAX):
        return [await consumer.getone() for _ in range(count)]


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run the coroutine function it decorates, at once."""

    async def main() -> None:
        await test()

    asyncio.run(main())


def test_created_topic_is_described_with_its_partitions(broker, topic: str) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic, partitions=3)
        async with admin_client(broker.bootstrap) as admin:
            (described,) = await admin.describe_topics([topic])
            assert sorted(part["partition"] for part in described["partitions"]) == [0, 1, 2]
            assert topic in await admin.list_topics()


def test_refused_topics_carry_their_error(broker, topic: str) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with admin_client(broker.bootstrap) as admin:
            requested = [NewTopic(topic, 1, 1), NewTopic("not a name!", 1, 1)]
            response = await admin.create_topics(requested)
        errors = {name: (for_code(code), text) for name, code, text in response.topic_errors}
        assert errors[topic][0] is TopicAlreadyExistsError
        assert errors["not a name!"][0] is InvalidTopicError
        assert "not a name!" in errors["not a name!"][1]


def test_deleted_topic_is_gone(broker, topic: str) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with admin_client(broker.bootstrap) as admin:
            await admin.delete_topics([topic])
            assert topic not in await admin.list_topics()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_produced_records_are_read_back(
    broker, topic: str, acks: int | str, compression: str | None
) -> None:
    values = [b"%d:" % number * 20 for number in range(100)]

    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        settings = {
            "acks": acks,
            "compression_type": compression,
            "enable_idempotence": acks == "all",
            "linger_ms": 5,
        }
        async with started_producer(broker.bootstrap, **settings) as producer:
            for value in values:
                await producer.send(topic, value)
        async with consumer_at_start(broker.bootstrap, topic) as consumer:
            records = await read(consumer, len(values))
        assert [record.value for record in records] == values
        assert [record.offset for record in records] == list(range(len(values)))


def test_key_value_headers_and_timestamp_come_back_as_sent(broker, topic: str) -> None:
    headers = [("trace", b"1-2-3"), ("empty", b""), ("trace", b"\x00\xff")]
    sent_at_ms = int(time.time() * 1000) - 5000

    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with started_producer(broker.bootstrap) as producer:
            await producer.send_and_wait(
                topic, b"value", b"key", headers=headers, timestamp_ms=sent_at_ms
            )
            await producer.send_and_wait(topic, None, b"tombstone")
        async with consumer_at_start(broker.bootstrap, topic) as consumer:
            first, tombstone = await read(consumer, 2)
        assert (first.key, first.value) == (b"key", b"value")
        assert list(first.headers) == headers
        assert (first.timestamp, first.timestamp_type) == (sent_at_ms, 0)
        assert (tombstone.key, tombstone.value) == (b"tombstone", None)


def test_broker_stamps_records_of_a_log_append_time_topic(broker, topic: str) -> None:
    before_ms = int(time.time() * 1000)

    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic, **{"message.timestamp.type": "LogAppendTime"})
        async with started_producer(broker.bootstrap) as producer:
            await producer.send_and_wait(topic, b"x", timestamp_ms=before_ms - DAY_MS)
        async with consumer_at_start(broker.bootstrap, topic) as consumer:
            (record,) = await read(consumer, 1)
        assert record.timestamp_type == 1
        assert before_ms <= record.timestamp <= int(time.time() * 1000)


def test_offsets_are_found_by_timestamp(broker, topic: str) -> None:
    start_ms = int(time.time() * 1000) - DAY_MS
    partition = TopicPartition(topic, 0)

    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with started_producer(broker.bootstrap) as producer:
            for number in range(10):
                sent_at_ms = start_ms + 1000 * number
                await producer.send_and_wait(topic, b"%d" % number, timestamp_ms=sent_at_ms)
        async with consumer_at_start(broker.bootstrap, topic) as consumer:
            exact = await consumer.offsets_for_times({partition: start_ms + 3000})
            between = await consumer.offsets_for_times({partition: start_ms + 3001})
            later = await consumer.offsets_for_times({partition: start_ms + 10_000})
            assert (exact[partition].offset, exact[partition].timestamp) == (3, start_ms + 3000)
            assert between[partition].offset == 4
            assert later[partition] is None
            consumer.seek(partition, 8)
            assert [record.value for record in await read(consumer, 2)] == [b"8", b"9"]
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}


def test_read_committed_consumer_reads_what_was_not_in_a_transaction(broker, topic: str) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with started_producer(broker.bootstrap) as producer:
            await producer.send_and_wait(topic, b"plain")
        settings = {"isolation_level": "read_committed"}
        async with consumer_at_start(broker.bootstrap, topic, **settings) as consumer:
            assert [record.value for record in await read(consumer, 1)] == [b"plain"]


def test_consumer_without_a_reset_policy_learns_that_its_offset_is_out_of_range(
    broker, topic: str
) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        settings = {"auto_offset_reset": "none"}
        async with consumer_at_start(broker.bootstrap, topic, **settings) as consumer:
            consumer.seek(TopicPartition(topic, 0), 99)
            with pytest.raises(OffsetOutOfRangeError):
                await read(consumer, 1)


def test_group_resumes_where_it_committed(broker, topic: str) -> None:
    partition = TopicPartition(topic, 0)

    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with started_producer(broker.bootstrap) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"%d" % number)
        settings = {"enable_auto_commit": False}
        async with group_consumer(broker.bootstrap, topic, **settings) as first:
            await read(first, 10)
            await first.commit({partition: OffsetAndMetadata(7, "nearly")})
        async with group_consumer(broker.bootstrap, topic, **settings) as second:
            assert [record.value for record in await read(second, 3)] == [b"7", b"8", b"9"]
            assert await second.committed(partition) == 7


class Members:
    """The members of one group, each read by a task; waiting is on what they saw."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._changed = asyncio.Condition()
        self._leaving: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.owned: dict[str, set[int]] = {}
        self.received: list[str] = []

    def join(self, name: str) -> None:
        self._leaving[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._consume(name))

    async def leave(self, name: str) -> None:
        self._leaving[name].set()
        await self._tasks.pop(name)

    async def leave_all(self) -> None:
        for name in list(self._tasks):
            await self.leave(name)

    async def wait_until_balanced(self, counts: list[int]) -> None:
        def is_balanced() -> bool:
            owned = list(self.owned.values())
            disjoint = len(set().union(*owned)) == sum(map(len, owned))
            return disjoint and sorted(map(len, owned)) == counts

        await self._wait_until(is_balanced)

    async def wait_until_read(self, values: set[str]) -> None:
        await self._wait_until(lambda: values <= set(self.received))

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(READ_SECONDS_MAX), self._changed:
            await self._changed.wait_for(condition)

    async def _consume(self, name: str) -> None:
        async with group_consumer(self._bootstrap, self._topic) as consumer:
            while not self._leaving[name].is_set():
                batches = await consumer.getmany(timeout_ms=100)
                async with self._changed:
                    for records in batches.values():
                        self.received += [record.value.decode() for record in records]
                    self.owned[name] = {part.partition for part in consumer.assignment()}
                    self._changed.notify_all()
        async with self._changed:
            del self.owned[name]
            self._changed.notify_all()


def test_group_shares_partitions_as_members_come_and_go(broker, topic: str) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic, partitions=6)
        members = Members(broker.bootstrap, topic)
        expected: set[str] = set()

        async with started_producer(broker.bootstrap) as producer:

            async def produce_and_wait(phase: str) -> None:
                for number in range(60):
                    value = f"{phase}-{number}"
                    await producer.send(topic, value.encode(), partition=number % 6)
                    expected.add(value)
                await members.wait_until_read(expected)

            members.join("first")
            await members.wait_until_balanced([6])
            await produce_and_wait("alone")
            members.join("second")
            await members.wait_until_balanced([3, 3])
            await produce_and_wait("two")
            members.join("third")
            await members.wait_until_balanced([2, 2, 2])
            await produce_and_wait("three")
            await members.leave("third")
            await members.wait_until_balanced([3, 3])
            await produce_and_wait("two again")
            await members.leave("second")
            await members.wait_until_balanced([6])
            await produce_and_wait("alone again")
            await members.leave_all()

        assert sorted(members.received) == sorted(expected)


def test_group_is_listed_and_described(broker, topic: str) -> None:
    group = f"group-{topic}"

    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with started_producer(broker.bootstrap) as producer:
            await producer.send_and_wait(topic, b"x")
        async with admin_client(broker.bootstrap) as admin:
            async with group_consumer(broker.bootstrap, topic) as consumer:
                await read(consumer, 1)
                (response,) = await admin.describe_consumer_groups([group])
                (_, name, state, kind, *_) = response.groups[0]
                assert (name, state, kind) == (group, "Stable", "consumer")
                assert group in {listed[0] for listed in await admin.list_consumer_groups()}
            offsets = await admin.list_consumer_group_offsets(group)
            assert offsets[TopicPartition(topic, 0)].offset == 1


def test_records_below_an_offset_are_deleted(broker, topic: str) -> None:
    partition = TopicPartition(topic, 0)

    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with started_producer(broker.bootstrap) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"%d" % number)
        async with admin_client(broker.bootstrap) as admin:
            deleted = await admin.delete_records({partition: RecordsToDelete(6)})
        assert deleted == {partition: 6}
        async with consumer_at_start(broker.bootstrap, topic) as consumer:
            records = await read(consumer, 4)
        assert [record.value for record in records] == [b"6", b"7", b"8", b"9"]


def test_added_partitions_take_records(broker, topic: str) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic)
        async with admin_client(broker.bootstrap) as admin:
            await admin.create_partitions({topic: NewPartitions(3)})
        async with started_producer(broker.bootstrap) as producer:
            metadata = await producer.send_and_wait(topic, b"x", partition=2)
        assert metadata.offset == 0


def test_topic_settings_are_described(broker, topic: str) -> None:
    @run
    async def scenario() -> None:
        await create(broker.bootstrap, topic, **{"retention.ms": "3600000"})
        async with admin_client(broker.bootstrap) as admin:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic)
            (response,) = await admin.describe_configs([resource])
        ((code, _, _, name, entries),) = response.resources
        assert (code, name) == (0, topic)
        assert {entry[0]: entry[1] for entry in entries}["retention.ms"] == "3600000"
