"""The producer with a real broker, ours or (ODRADEK_TEST_BOOTSTRAP) any other Kafka."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import confluent_kafka
import pytest
import trio
from kafka import KafkaConsumer, TopicPartition

from odradek.client import (
    AbortableTransactionError,
    Admin,
    BufferExhaustedError,
    KafkaClient,
    MetadataTimeoutError,
    Producer,
    ProducerClosedError,
    ProducerFencedError,
    ProducerSettings,
    RecordTooLargeError,
    UnsupportedByBrokerError,
)
from odradek.client.admin.admin import NewTopic
from odradek.client.settings import ClientSettings
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol import messages
from odradek.protocol.compression.codecs import Compression
from odradek.testing import Broker, faults

pytestmark = pytest.mark.clients

PATIENT_SECONDS = 120
SAFE_DOWNGRADE = 2


class Group(NamedTuple):
    """Who read."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


def records_of(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[Any]:
    """All records of a topic's partitions, as kafka-python reads them, in their order."""
    with KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest"
    ) as consumer:
        partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        records: dict[TopicPartition, list[Any]] = {partition: [] for partition in partitions}
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            for partition, polled in consumer.poll(timeout_ms=1000).items():
                records[partition] += polled
    return [record for partition in sorted(partitions) for record in records[partition]]


async def read(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[Any]:
    return await trio.to_thread.run_sync(records_of, bootstrap, topic, isolation)


def transactional(name: str, **settings: Any) -> ProducerSettings:
    return ProducerSettings(transactional_id=name, **settings)


async def in_transaction(
    producer: Producer,
    topic: str,
    *values: bytes,
    offsets: tuple[int, Group] | None = None,
    fails: bool = False,
    flushes: bool = True,
) -> None:
    """A transaction of these records, and of an offset; aborted, if it fails."""
    async with producer.transaction():
        for value in values:
            await producer.send(topic, value)
        if offsets is not None:
            await producer.send_offsets_to_transaction({(topic, 0): offsets[0]}, offsets[1])
        if flushes:
            await producer.flush()
        if fails:
            raise ZeroDivisionError


async def create(client: KafkaClient, topic: str, partitions: int = 1, **configs: str) -> None:
    await Admin(client).create_topics([NewTopic(topic, partitions, 1, configs=configs)])


# --- Records -----------------------------------------------------------------------------------


async def test_a_record_arrives_whole(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, 3)
        async with Producer(client) as producer:
            delivery = await producer.send(
                topic,
                b"v",
                b"k",
                headers=[("h", b"1"), ("n", None)],
                timestamp_ms=1_700_000_000_000,
            )
            place = await delivery
            assert delivery.is_done
    (record,) = await read(broker.bootstrap, topic)
    assert (record.key, record.value, record.headers) == (b"k", b"v", [("h", b"1"), ("n", None)])
    assert record.timestamp == 1_700_000_000_000 == place.timestamp
    assert (record.partition, record.offset) == (place.partition, place.offset)


@pytest.mark.parametrize("compression", list(Compression))
async def test_many_records_of_one_task_stay_in_order(broker, topic, compression):
    settings = ProducerSettings(compression_type=compression)
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, 2)
        async with Producer(client, settings) as producer:
            for number in range(3000):
                await producer.send(topic, b"%d" % number, partition=number % 2)
    records = await read(broker.bootstrap, topic)
    for partition in range(2):
        values = [int(record.value) for record in records if record.partition == partition]
        assert values == list(range(partition, 3000, 2))


async def test_keys_go_where_librdkafka_and_kafka_python_send_them(broker, topic):
    keys = [b"key-%d" % number for number in range(50)]
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, 7)
        async with Producer(client) as producer:
            for key in keys:
                await producer.send(topic, b"ours", key)

        def send_with_librdkafka() -> None:
            other = confluent_kafka.Producer(
                {"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"}
            )
            for key in keys:
                other.produce(topic, b"theirs", key)
            assert other.flush(PATIENT_SECONDS) == 0

        await trio.to_thread.run_sync(send_with_librdkafka)
    placed = {(r.key, r.partition) for r in await read(broker.bootstrap, topic)}
    assert len(placed) == len(keys)


async def test_what_was_sent_without_account_is_there_after_a_flush(broker, topic):
    async with KafkaClient(broker.bootstrap) as client, Producer(client) as producer:
        with pytest.raises(trio.WouldBlock):
            producer.send_nowait(topic, b"x")  # nobody knows the topic yet
        await producer.send(topic, b"0")
        for number in range(1, 5000):
            producer.send_nowait(topic, b"%d" % number)
        await producer.flush()
        values = [int(record.value) for record in await read(broker.bootstrap, topic)]
    assert sorted(values) == list(range(5000))


async def test_records_above_a_megabyte_are_sent_where_settings_and_topic_allow(broker, topic):
    settings = ProducerSettings(max_request_size=8_000_000)
    large = b"x" * 3_000_000
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, 1, **{"max.message.bytes": "4000000"})
        async with Producer(client, settings) as producer:
            await producer.send(topic, b"before")
            await producer.send(topic, large)
            await producer.send(topic, b"after")
            with pytest.raises(RecordTooLargeError, match="max_request_size=8000000"):
                await producer.send(topic, b"x" * 8_000_000)
            refused = await producer.send(topic, b"x" * 5_000_000)
            last = await producer.send(topic, b"last")
            with pytest.raises(KafkaError, match=r"max\.message\.bytes") as raised:
                await refused
            assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE
            assert (await last).offset == 3
    values = [record.value for record in await read(broker.bootstrap, topic)]
    assert values == [b"before", large, b"after", b"last"]


async def test_a_batch_larger_than_the_topic_takes_is_split(broker, topic):
    settings = ProducerSettings(batch_size=100_000, linger_ms=10_000)
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, 1, **{"max.message.bytes": "20000"})
        async with Producer(client, settings) as producer:
            sent = [await producer.send(topic, b"%02d" % n + b"x" * 5000) for n in range(15)]
            await producer.flush()
            assert [(await delivery).offset for delivery in sent] == list(range(15))
    values = [record.value[:2] for record in await read(broker.bootstrap, topic)]
    assert values == [b"%02d" % number for number in range(15)]


async def test_flush_raises_what_nobody_awaited(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic, 1, **{"max.message.bytes": "2000"})
        async with Producer(client) as producer:
            await producer.send(topic, b"x" * 5000)
            with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                await producer.flush()
            await producer.flush()
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            async with Producer(client) as producer:
                await producer.send(topic, b"x" * 5000)


async def test_an_exception_drops_what_was_not_sent(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        producer = Producer(client, ProducerSettings(linger_ms=60_000))
        delivery = None

        async def send_and_fail() -> None:
            nonlocal delivery
            async with producer:
                delivery = await producer.send(topic, b"x")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await send_and_fail()
        with pytest.raises(ProducerClosedError):
            await delivery
        with pytest.raises(ProducerClosedError):
            await producer.send(topic, b"x")
    assert await read(broker.bootstrap, topic) == []


@pytest.mark.parametrize("acks", [0, 1])
async def test_other_acks_send_without_idempotence(broker, topic, acks):
    async with KafkaClient(broker.bootstrap) as client:
        await create(client, topic)
        async with Producer(client, ProducerSettings(acks=acks)) as producer:
            sent = [await producer.send(topic, b"%d" % number) for number in range(20)]
            offsets = [(await delivery).offset for delivery in sent]
        assert offsets == ([-1] * 20 if acks == 0 else list(range(20)))
        with trio.fail_after(PATIENT_SECONDS):
            while len(records := await read(broker.bootstrap, topic)) < 20:
                await trio.lowlevel.checkpoint()
    assert [record.value for record in records] == [b"%d" % number for number in range(20)]


async def test_a_partition_that_is_not_there_is_named(broker, topic):
    settings = ClientSettings(max_block_ms=500)
    async with KafkaClient(broker.bootstrap, settings) as client, Producer(client) as producer:
        await create(client, topic)
        with pytest.raises(MetadataTimeoutError, match=f"partition 5 of topic '{topic}'"):
            await producer.send(topic, b"x", partition=5)


async def test_the_old_form_works_with_a_warning(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        with pytest.warns(DeprecationWarning, match="ProducerSettings"):
            producer = Producer(client, compression=Compression.GZIP)
        with pytest.warns(DeprecationWarning, match="BatchProducer"):
            result = await producer.send(topic, 0, [(b"k", b"v", 1_700_000_000_000, ())])
    assert result.base_offset == 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"acks": 2}, "acks=2"),
        ({"acks": 1, "enable_idempotence": True}, "needs acks=-1"),
        ({"acks": 1, "transactional_id": "t"}, "needs enable_idempotence"),
        ({"linger_ms": -1}, "linger_ms=-1 is not possible"),
        ({"delivery_timeout_ms": 1000}, "delivery_timeout_ms=1000 is less than linger_ms=5"),
        ({"transactional_id": ""}, "transactional_id is empty"),
    ],
)
async def test_settings_that_make_no_sense_are_named(settings, sentence):
    async with KafkaClient("127.0.0.1:1") as client:
        with pytest.raises(ValueError, match=sentence):
            async with Producer(client, ProducerSettings(**settings)):
                raise AssertionError("it was opened")


# --- Faults ------------------------------------------------------------------------------------


@pytest.fixture
def faulty():
    with Broker() as broker:
        broker.create_topic("orders", 1)
        yield broker


async def test_under_many_faults_every_record_is_there_once_and_in_order(faulty):
    kinds = (
        faults.lose_answer("Produce", topic="orders"),
        faults.disconnect("Produce", topic="orders"),
        faults.truncate_answer("Produce", size=9, topic="orders"),
        faults.delay("Produce", 0.02, topic="orders"),
        faults.delay_answer("Produce", 0.02, topic="orders"),
        faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders"),
        faults.answer("Produce", "REQUEST_TIMED_OUT", after_applying=True, topic="orders"),
    )
    for seed, fault in enumerate(kinds, 20):
        faulty.faults.add(fault.with_probability(0.08, seed))
    settings = ClientSettings(retry_backoff_ms=5, retry_backoff_max_ms=20, reconnect_backoff_ms=5)
    one_record_each = ProducerSettings(batch_size=64, linger_ms=0)  # requests to strike
    async with (
        KafkaClient(faulty.bootstrap_servers, settings) as client,
        Producer(client, one_record_each) as producer,
    ):
        sent = [await producer.send("orders", b"%d" % number) for number in range(150)]
        with trio.fail_after(PATIENT_SECONDS):
            offsets = [(await delivery).offset for delivery in sent]
    struck = {fault.fault.action: fault.strikes for fault in faulty.faults.list()}
    assert min(struck.values()) > 0, struck
    assert [int(record.value) for record in faulty.read("orders")] == list(range(150))
    assert all(offset in (-1, number) for number, offset in enumerate(offsets))


@pytest.mark.parametrize(
    "refusal",
    [
        faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders"),
        faults.disconnect("Produce", topic="orders"),
    ],
    ids=["NOT_LEADER_OR_FOLLOWER", "disconnect"],
)
async def test_a_first_record_that_is_refused_is_not_overtaken(faulty, refusal):
    # A leader takes any sequence number of a producer of whom it knows nothing, as Kafka's does.
    faulty.faults.add(refusal.once())
    one_record_each = ProducerSettings(batch_size=64, linger_ms=0)
    async with (
        KafkaClient(faulty.bootstrap_servers, ClientSettings(retry_backoff_ms=5)) as client,
        Producer(client, one_record_each) as producer,
    ):
        sent = [await producer.send("orders", b"%d" % number) for number in range(10)]
        with trio.fail_after(PATIENT_SECONDS):
            assert [(await delivery).offset for delivery in sent] == list(range(10))
    assert [int(record.value) for record in faulty.read("orders")] == list(range(10))


async def test_a_transaction_is_exact_under_faults(faulty):
    kinds = (
        faults.lose_answer("Produce", topic="orders"),
        faults.lose_answer("EndTxn"),
        faults.disconnect("InitProducerId"),
        faults.answer("EndTxn", "CONCURRENT_TRANSACTIONS"),
        faults.answer("EndTxn", "NOT_COORDINATOR"),
    )
    for seed, fault in enumerate(kinds, 20):
        faulty.faults.add(fault.with_probability(0.3, seed))
    settings = ClientSettings(retry_backoff_ms=5, retry_backoff_max_ms=20, reconnect_backoff_ms=5)
    async with (
        KafkaClient(faulty.bootstrap_servers, settings) as client,
        Producer(client, transactional("t")) as producer,
    ):
        with trio.fail_after(PATIENT_SECONDS):
            await producer.init_transactions()
            for number in range(20):
                with contextlib.suppress(ZeroDivisionError):
                    async with producer.transaction():
                        await producer.send("orders", b"%d" % number)
                        await producer.send("orders", b"%d" % number)
                        if number % 3 == 0:
                            await producer.flush()
                            raise ZeroDivisionError
    records = await read(faulty.bootstrap_servers, "orders", "read_committed")
    assert [int(record.value) for record in records] == [
        number for number in range(20) if number % 3 for _ in range(2)
    ]


async def test_a_full_buffer_is_waited_for_and_then_named(faulty):
    settings = ProducerSettings(batch_size=1000, buffer_memory=3000)
    held = faulty.faults.add(faults.drop("Produce", topic="orders").until_lifted())

    async def fill(client_settings: ClientSettings, value: bytes) -> None:
        async with (
            KafkaClient(faulty.bootstrap_servers, client_settings) as client,
            Producer(client, settings) as producer,
        ):
            for _ in range(50):
                await producer.send("orders", value)

    with pytest.raises(BufferExhaustedError, match="buffer_memory=3000 was full for 300 ms"):
        await fill(ClientSettings(max_block_ms=300), b"x" * 900)
    held.lift()
    await fill(ClientSettings(), b"y" * 900)
    values = [record.value for record in faulty.read("orders")]
    assert values == [b"y" * 900] * 50


# --- Transactions ------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[2, 1, 0], ids=lambda level: f"transaction.version={level}")
def generation(request, start_module_broker):
    """A broker that speaks either generation of the protocol."""
    process = start_module_broker()
    if request.param != 2:
        trio.run(downgrade, process.bootstrap, request.param)
    return process


async def downgrade(bootstrap, level):
    async with KafkaClient(bootstrap) as client:
        make = messages.UpdateFeaturesRequest.FeatureUpdateKey
        update = make(
            feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE
        )
        request = messages.UpdateFeaturesRequest(feature_updates=[update])
        try:
            answer = await client.send_to_controller(request)
        except UnsupportedByBrokerError as error:
            pytest.skip(str(error))
        assert answer.error_code == ErrorCode.NONE


async def test_committed_records_are_read_and_aborted_ones_are_not(generation, topic):
    async with KafkaClient(generation.bootstrap) as client:
        await create(client, topic, 2)
        async with Producer(client, transactional(topic)) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                for number in range(10):
                    await producer.send(topic, b"committed-%d" % number, partition=number % 2)
            aborted = [b"aborted-%d" % number for number in range(10)]
            with pytest.raises(ZeroDivisionError):
                await in_transaction(producer, topic, *aborted, fails=True)
            with pytest.raises(ZeroDivisionError):
                await in_transaction(producer, topic, b"never sent", flushes=False, fails=True)
            async with producer.transaction():
                pass  # an empty one is committed, too
            async with producer.transaction():
                await producer.send(topic, b"last", partition=0)
    committed = [r.value for r in await read(generation.bootstrap, topic, "read_committed")]
    assert sorted(committed) == sorted([*(b"committed-%d" % n for n in range(10)), b"last"])
    assert len(await read(generation.bootstrap, topic)) >= 21


async def test_an_earlier_producer_is_fenced(generation, topic):
    async with KafkaClient(generation.bootstrap) as client:
        await create(client, topic)
        async with Producer(client, transactional(topic)) as zombie:
            await zombie.init_transactions()
            await zombie.begin_transaction()
            await zombie.send(topic, b"of the zombie")
            await zombie.flush()
            async with Producer(client, transactional(topic)) as producer:
                await producer.init_transactions()
                async with producer.transaction():
                    await producer.send(topic, b"of its successor")
            await zombie.send(topic, b"too late")
            with pytest.raises((ProducerFencedError, AbortableTransactionError)):
                await zombie.commit_transaction()
            if zombie._transactions.error is not None:
                with pytest.raises(ProducerFencedError):
                    await zombie.abort_transaction()
            with pytest.raises(ProducerFencedError):
                await zombie.send(topic, b"even later")
    values = [r.value for r in await read(generation.bootstrap, topic, "read_committed")]
    assert values == [b"of its successor"]


async def test_offsets_are_committed_with_the_transaction_or_not_at_all(generation, topic):
    group = f"group-of-{topic}"
    async with KafkaClient(generation.bootstrap) as client:
        await create(client, topic)
        async with Producer(client, transactional(topic)) as producer:
            await producer.init_transactions()
            await in_transaction(producer, topic, b"x", offsets=(5, Group(group)))
            with pytest.raises(ZeroDivisionError):
                await in_transaction(producer, topic, offsets=(9, Group(group)), fails=True)

    def committed() -> int:
        with KafkaConsumer(
            bootstrap_servers=generation.bootstrap, group_id=group, enable_auto_commit=False
        ) as consumer:
            return consumer.committed(TopicPartition(topic, 0))

    assert await trio.to_thread.run_sync(committed) == 5


async def test_a_group_that_moved_on_aborts_the_transaction(generation, topic):
    member = Group(f"group-of-{topic}", generation_id=7, member_id="gone")
    async with KafkaClient(generation.bootstrap) as client:
        await create(client, topic)
        async with Producer(client, transactional(topic)) as producer:
            await producer.init_transactions()
            with pytest.raises(AbortableTransactionError):
                await in_transaction(producer, topic, b"aborted", offsets=(5, member))
            async with producer.transaction():
                await producer.send(topic, b"committed")
    values = [r.value for r in await read(generation.bootstrap, topic, "read_committed")]
    assert values == [b"committed"]


async def test_a_record_that_fails_aborts_the_transaction_and_the_next_one_commits(
    generation, topic
):
    async with KafkaClient(generation.bootstrap) as client:
        await create(client, topic, 1, **{"max.message.bytes": "20000"})
        async with Producer(client, transactional(topic)) as producer:
            await producer.init_transactions()
            with pytest.raises(AbortableTransactionError, match="MESSAGE_TOO_LARGE"):
                await in_transaction(producer, topic, b"aborted", b"x" * 30_000, flushes=False)
            async with producer.transaction():
                await producer.send(topic, b"committed")
    values = [r.value for r in await read(generation.bootstrap, topic, "read_committed")]
    assert values == [b"committed"]


async def test_transactions_are_called_in_their_order(broker, topic):
    async with KafkaClient(broker.bootstrap) as client:
        async with Producer(client, transactional(topic)) as producer:
            with pytest.raises(RuntimeError, match="uninitialized cannot become in transaction"):
                await producer.begin_transaction()
            await producer.init_transactions()
            with pytest.raises(RuntimeError, match="it is ready"):
                await producer.send(topic, b"x")
            with pytest.raises(RuntimeError, match="ready cannot become committing"):
                await producer.commit_transaction()
            await producer.begin_transaction()
            with pytest.raises(RuntimeError, match="in transaction cannot become in transaction"):
                await producer.begin_transaction()
            await producer.abort_transaction()
        async with Producer(client) as producer:
            with pytest.raises(RuntimeError, match="no transactional_id"):
                await producer.init_transactions()
