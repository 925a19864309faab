"""confluent-kafka (librdkafka) as a user of the broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    ConsumerGroupState,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from support.group_members import GroupMember, GroupWatch

pytestmark = pytest.mark.clients

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]
READ_SECONDS_MAX = 100.0
DAY_MS = 86_400_000
QUIET = {"log_level": 2}
"""librdkafka reconnects until its objects are collected; it need not tell after a broker ended."""

CreateTopic = Callable[..., str]
Consume = Callable[..., Consumer]


@pytest.fixture(scope="module")
def admin(broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})


@pytest.fixture
def producer(broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, **QUIET})


@pytest.fixture
def create_topic(admin: AdminClient, topic: str) -> CreateTopic:
    def create(partitions: int = 1, **config: str) -> str:
        result_of(admin.create_topics([NewTopic(topic, partitions, 1, config=config)]))
        return topic

    return create


@pytest.fixture
def consume(broker) -> Iterator[Consume]:
    consumers = []

    def start(**settings: object) -> Consumer:
        defaults = {
            "bootstrap.servers": broker.bootstrap,
            **QUIET,
            "group.id": "unused",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 60_000,
        }
        changed = {key.replace("_", "."): value for key, value in settings.items()}
        consumer = Consumer({**defaults, **changed})
        consumers.append(consumer)
        return consumer

    yield start
    for consumer in consumers:
        consumer.close()


def result_of(futures: dict[Any, Future[Any]]) -> Any:
    """The result of the only future of an admin call."""
    (future,) = futures.values()
    return future.result(READ_SECONDS_MAX)


def read(consumer: Consumer, count: int) -> list[Message]:
    """Poll until `count` records have come."""
    messages: list[Message] = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} records came"
        for message in consumer.consume(count - len(messages), timeout=1.0):
            if message.error():
                raise KafkaException(message.error())
            messages.append(message)
    return messages


def read_partition(consumer: Consumer, topic: str, count: int, partition: int = 0) -> list[Message]:
    """Read the first `count` records of a partition."""
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    return read(consumer, count)


def produce(producer: Producer, topic: str, values: list[bytes], **arguments: Any) -> list[Message]:
    """Produce, and return the delivered messages in their order of delivery."""
    delivered: list[Message] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        delivered.append(message)

    for value in values:
        producer.produce(topic, value, on_delivery=on_delivery, **arguments)
    assert producer.flush(READ_SECONDS_MAX) == 0
    return delivered


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_created_topic_is_described_with_its_partitions(
    admin: AdminClient, create_topic: CreateTopic
) -> None:
    topic = create_topic(partitions=3)

    described = result_of(admin.describe_topics(TopicCollection([topic])))

    assert described.name == topic
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    node_ids = {node.id for node in admin.describe_cluster().result(READ_SECONDS_MAX).nodes}
    assert {partition.leader.id for partition in described.partitions} == node_ids
    assert topic in admin.list_topics(timeout=READ_SECONDS_MAX).topics


def test_topic_of_a_taken_name_is_refused(admin: AdminClient, create_topic: CreateTopic) -> None:
    topic = create_topic()

    with pytest.raises(KafkaException) as failure:
        result_of(admin.create_topics([NewTopic(topic, 1, 1)]))

    assert failure.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def test_topic_of_a_bad_name_is_refused_with_a_message(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as failure:
        result_of(admin.create_topics([NewTopic("not a name!", 1, 1)]))

    assert failure.value.args[0].code() == KafkaError.TOPIC_EXCEPTION
    assert "not a name!" in failure.value.args[0].str()


def test_topic_with_more_replicas_than_brokers_is_refused(admin: AdminClient, topic: str) -> None:
    with pytest.raises(KafkaException) as failure:
        result_of(admin.create_topics([NewTopic(topic, 1, 2)]))

    assert failure.value.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR


def test_deleted_topic_is_gone(admin: AdminClient, create_topic: CreateTopic) -> None:
    topic = create_topic()

    result_of(admin.delete_topics([topic]))

    assert topic not in admin.list_topics(timeout=READ_SECONDS_MAX).topics
    with pytest.raises(KafkaException) as failure:
        result_of(admin.delete_topics([topic]))
    assert failure.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topic_is_created_when_a_producer_asks_for_it(producer: Producer, topic: str) -> None:
    (message,) = produce(producer, topic, [b"first"])

    assert (message.topic(), message.partition(), message.offset()) == (topic, 0, 0)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_produced_records_are_read_back(
    broker, create_topic: CreateTopic, consume: Consume, acks: str, compression: str
) -> None:
    topic = create_topic()
    values = [b"%d:" % number * 20 for number in range(100)]
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            **QUIET,
            "acks": acks,
            "enable.idempotence": acks == "all",
            "compression.type": compression,
            "linger.ms": 5,
        }
    )

    produce(producer, topic, values)

    messages = read_partition(consume(), topic, len(values))
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(len(values)))


def test_key_value_headers_and_timestamp_come_back_as_sent(
    producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    headers = [("trace", b"1-2-3"), ("empty", b""), ("null", None), ("trace", b"\x00\xff")]
    sent_at_ms = int(time.time() * 1000) - 5000

    produce(producer, topic, [b"value"], key=b"key", headers=headers, timestamp=sent_at_ms)
    producer.produce(topic, None, b"tombstone")
    producer.flush(READ_SECONDS_MAX)

    first, tombstone = read_partition(consume(), topic, 2)
    assert (first.key(), first.value()) == (b"key", b"value")
    assert first.headers() == headers
    assert first.timestamp() == (TIMESTAMP_CREATE_TIME, sent_at_ms)
    assert (tombstone.key(), tombstone.value()) == (b"tombstone", None)


def test_broker_stamps_records_of_a_log_append_time_topic(
    producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic(**{"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)

    produce(producer, topic, [b"x"], timestamp=before_ms - DAY_MS)

    (message,) = read_partition(consume(), topic, 1)
    kind, stamped_ms = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before_ms <= stamped_ms <= int(time.time() * 1000)


def test_record_of_900_kilobytes_is_read_back(
    producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    value = bytes(range(256)) * 3600

    produce(producer, topic, [value])

    (message,) = read_partition(consume(), topic, 1)
    assert message.value() == value


def test_record_larger_than_the_topic_allows_is_refused(
    producer: Producer, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"max.message.bytes": "1000"})

    with pytest.raises(KafkaException) as failure:
        produce(producer, topic, [b"x" * 2000])

    assert failure.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_offsets_are_found_by_timestamp(
    producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    start_ms = int(time.time() * 1000) - DAY_MS
    for number in range(10):
        produce(producer, topic, [b"%d" % number], timestamp=start_ms + 1000 * number)
    consumer = consume()

    def find(timestamp_ms: int) -> int:
        requested = [TopicPartition(topic, 0, timestamp_ms)]
        (found,) = consumer.offsets_for_times(requested, timeout=READ_SECONDS_MAX)
        return found.offset

    assert find(start_ms + 3000) == 3
    assert find(start_ms + 3001) == 4
    # Kafka answers "none"; librdkafka turns that into the end of the partition.
    end = TopicPartition(topic, 0, find(start_ms + 10_000))
    assert end.offset == -1
    consumer.assign([TopicPartition(topic, 0, find(start_ms + 7500))])
    assert [message.value() for message in read(consumer, 2)] == [b"8", b"9"]


def test_offsets_are_listed(
    admin: AdminClient, producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    stamped_ms = int(time.time() * 1000)
    for number in range(7):
        produce(producer, topic, [b"x"], timestamp=stamped_ms + (number == 3))

    def list_offset(spec: OffsetSpec) -> int:
        requested = {TopicPartition(topic, 0): spec}
        committed = IsolationLevel.READ_COMMITTED
        return result_of(admin.list_offsets(requested, isolation_level=committed)).offset

    partition = TopicPartition(topic, 0)
    assert consume().get_watermark_offsets(partition, timeout=READ_SECONDS_MAX) == (0, 7)
    assert list_offset(OffsetSpec.earliest()) == 0
    assert list_offset(OffsetSpec.latest()) == 7
    assert list_offset(OffsetSpec.max_timestamp()) == 3
    assert list_offset(OffsetSpec.for_timestamp(stamped_ms + 1)) == 3


def test_read_committed_and_uncommitted_read_what_was_not_in_a_transaction(
    producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    produce(producer, topic, [b"plain"])

    for level in ("read_committed", "read_uncommitted"):
        (message,) = read_partition(consume(isolation_level=level), topic, 1)
        assert message.value() == b"plain"


def test_consumer_without_a_reset_policy_learns_that_its_offset_is_out_of_range(
    create_topic: CreateTopic, consume: Consume
) -> None:
    consumer = consume(auto_offset_reset="error")
    consumer.assign([TopicPartition(create_topic(), 0, 99)])

    with pytest.raises(KafkaException) as failure:
        read(consumer, 1)

    assert failure.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def test_group_resumes_where_it_committed(
    producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    produce(producer, topic, numbered(10))
    settings = {"group_id": f"group-{topic}", "enable_auto_commit": False}
    first = consume(**settings)
    first.subscribe([topic])
    read(first, 10)

    halfway = TopicPartition(topic, 0, 4, "half way")
    first.commit(offsets=[halfway], asynchronous=False)
    first.close()

    second = consume(**settings)
    second.subscribe([topic])
    assert [message.value() for message in read(second, 6)] == numbered(10)[4:]
    (committed,) = second.committed([TopicPartition(topic, 0)], timeout=READ_SECONDS_MAX)
    assert (committed.offset, committed.metadata) == (4, "half way")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_group_shares_partitions_as_members_come_and_go(
    producer: Producer, create_topic: CreateTopic, consume: Consume, strategy: str
) -> None:
    topic = create_topic(partitions=6)
    watch = GroupWatch()

    def join(name: str) -> GroupMember:
        consumer = consume(group_id=f"group-{topic}", partition_assignment_strategy=strategy)
        consumer.subscribe([topic])

        def poll() -> list[str]:
            messages = consumer.consume(1000, timeout=0.1)
            return [message.value().decode() for message in messages if not message.error()]

        def assignment() -> set[int]:
            return {partition.partition for partition in consumer.assignment()}

        return watch.add(name, poll, assignment, consumer.close)

    def produce(values: list[str]) -> None:
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % 6)
        assert producer.flush(READ_SECONDS_MAX) == 0

    watch.require_sharing(join, produce)


def test_group_is_listed_described_and_deleted(
    admin: AdminClient, producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    group = f"group-{topic}"
    produce(producer, topic, [b"x"])
    consumer = consume(group_id=group, client_id="the-member")
    consumer.subscribe([topic])
    read(consumer, 1)
    consumer.commit(asynchronous=False)

    def describe() -> Any:
        return result_of(admin.describe_consumer_groups([group]))

    described = describe()
    assert described.state == ConsumerGroupState.STABLE
    (member,) = described.members
    assert member.client_id == "the-member"
    assert [part.partition for part in member.assignment.topic_partitions] == [0]
    listed = admin.list_consumer_groups().result(READ_SECONDS_MAX)
    assert group in {found.group_id for found in listed.valid}
    with pytest.raises(KafkaException) as failure:
        result_of(admin.delete_consumer_groups([group]))
    assert failure.value.args[0].code() == KafkaError.NON_EMPTY_GROUP

    consumer.close()
    assert describe().state == ConsumerGroupState.EMPTY
    result_of(admin.delete_consumer_groups([group]))
    listed = admin.list_consumer_groups().result(READ_SECONDS_MAX)
    assert group not in {found.group_id for found in listed.valid}


def test_records_below_an_offset_are_deleted(
    admin: AdminClient, producer: Producer, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()
    produce(producer, topic, numbered(10))

    deleted = result_of(admin.delete_records([TopicPartition(topic, 0, 6)]))

    assert deleted.low_watermark == 6
    messages = read_partition(consume(), topic, 4)
    assert [message.value() for message in messages] == numbered(10)[6:]


def test_added_partitions_take_records(
    admin: AdminClient, broker, create_topic: CreateTopic, consume: Consume
) -> None:
    topic = create_topic()

    result_of(admin.create_partitions([NewPartitions(topic, 3)]))

    assert len(admin.list_topics(topic, timeout=READ_SECONDS_MAX).topics[topic].partitions) == 3
    fresh = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    (message,) = produce(fresh, topic, [b"x"], partition=2)
    assert message.offset() == 0


def test_topic_settings_are_described_and_altered(
    admin: AdminClient, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"retention.ms": "3600000"})

    def describe() -> dict[str, ConfigEntry]:
        return result_of(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))

    before = describe()
    assert before["retention.ms"].value == "3600000"
    assert before["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert before["cleanup.policy"].source == ConfigSource.DEFAULT_CONFIG.value
    two_hours = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[two_hours])
    result_of(admin.incremental_alter_configs([changed]))
    assert describe()["retention.ms"].value == "7200000"
