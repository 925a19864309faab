"""kafka-python as a user of the broker: topics, records, groups, offsets, administration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
)
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from support.group_members import GroupMember, GroupWatch

pytestmark = pytest.mark.clients

COMPRESSIONS = [None, "gzip", "snappy", "lz4", "zstd"]
READ_SECONDS_MAX = 100.0
DAY_MS = 86_400_000

CreateTopic = Callable[..., str]


@pytest.fixture(scope="module")
def admin(broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def producer(broker) -> Iterator[KafkaProducer]:
    client = KafkaProducer(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def create_topic(admin: KafkaAdminClient, topic: str) -> CreateTopic:
    def create(partitions: int = 1, **configs: str) -> str:
        requested = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
        admin.create_topics({topic: requested}, wait_for_metadata=True)
        return topic

    return create


@pytest.fixture
def consume(broker) -> Iterator[Callable[..., KafkaConsumer]]:
    consumers = []

    def start(*topics: str, **settings: object) -> KafkaConsumer:
        settings = {
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 200,
            "session_timeout_ms": 60_000,
            **settings,
        }
        consumer = KafkaConsumer(*topics, bootstrap_servers=broker.bootstrap, **settings)
        consumers.append(consumer)
        return consumer

    yield start
    for consumer in consumers:
        consumer.close()


def read(consumer: KafkaConsumer, count: int) -> list[ConsumerRecord]:
    """Poll until `count` records have come."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came"
        for batch in consumer.poll(timeout_ms=1000).values():
            records += batch
    return records


def assign_from_start(consumer: KafkaConsumer, topic: str, partitions: int = 1) -> KafkaConsumer:
    consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
    consumer.seek_to_beginning()
    return consumer


def test_created_topic_is_described_with_its_partitions(
    admin: KafkaAdminClient, create_topic: CreateTopic
) -> None:
    topic = create_topic(partitions=3)

    (described,) = admin.describe_topics([topic])

    brokers = {node["broker_id"] for node in admin.describe_cluster()["brokers"]}
    assert described["error_code"] == 0
    assert sorted(part["partition_index"] for part in described["partitions"]) == [0, 1, 2]
    assert {part["leader_id"] for part in described["partitions"]} == brokers
    assert topic in admin.list_topics()


def test_topic_of_a_taken_name_is_refused(
    admin: KafkaAdminClient, create_topic: CreateTopic
) -> None:
    topic = create_topic()

    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([topic])


def test_topic_of_a_bad_name_is_refused_with_a_message(admin: KafkaAdminClient) -> None:
    result = admin.create_topics(["not a name!"], raise_errors=False)

    (refused,) = result["topics"]
    assert refused["error_code"] == InvalidTopicError.errno
    assert "not a name!" in refused["error_message"]


def test_deleted_topic_is_gone(admin: KafkaAdminClient, create_topic: CreateTopic) -> None:
    topic = create_topic()

    admin.delete_topics([topic])

    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])
    assert topic not in admin.list_topics()


def test_topic_is_created_when_a_producer_asks_for_it(producer: KafkaProducer, topic: str) -> None:
    metadata = producer.send(topic, b"first").get(timeout=READ_SECONDS_MAX)

    assert (metadata.topic, metadata.partition, metadata.offset) == (topic, 0, 0)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_produced_records_are_read_back(
    broker, create_topic: CreateTopic, consume, acks: int | str, compression: str | None
) -> None:
    topic = create_topic()
    values = [b"%d:" % number * 20 for number in range(100)]

    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        acks=acks,
        compression_type=compression,
        enable_idempotence=acks == "all",
        linger_ms=5,
    )
    for value in values:
        producer.send(topic, value)
    producer.close()

    records = read(assign_from_start(consume(), topic), len(values))
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(len(values)))


def test_key_value_headers_and_timestamp_come_back_as_sent(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic()
    headers = [("trace", b"1-2-3"), ("empty", b""), ("trace", b"again"), ("größe", b"\x00\xff")]
    sent_at_ms = int(time.time() * 1000) - 5000

    producer.send(topic, b"value", b"key", headers=headers, timestamp_ms=sent_at_ms)
    producer.send(topic, None, b"tombstone")
    producer.send(topic, b"", None)
    producer.flush()

    first, tombstone, empty = read(assign_from_start(consume(), topic), 3)
    assert (first.key, first.value) == (b"key", b"value")
    assert first.headers == headers
    assert (first.timestamp, first.timestamp_type) == (sent_at_ms, 0)
    assert (tombstone.key, tombstone.value) == (b"tombstone", None)
    assert (empty.key, empty.value) == (None, b"")


def test_broker_stamps_records_of_a_log_append_time_topic(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic(**{"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)

    metadata = producer.send(topic, b"x", timestamp_ms=before_ms - DAY_MS).get(
        timeout=READ_SECONDS_MAX
    )

    (record,) = read(assign_from_start(consume(), topic), 1)
    assert record.timestamp_type == 1
    assert before_ms <= record.timestamp <= int(time.time() * 1000)
    assert metadata.timestamp == record.timestamp


def test_record_of_900_kilobytes_is_read_back(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic()
    value = bytes(range(256)) * 3600

    producer.send(topic, value).get(timeout=READ_SECONDS_MAX)

    (record,) = read(assign_from_start(consume(), topic), 1)
    assert record.value == value


def test_offsets_are_found_by_timestamp(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic()
    start_ms = int(time.time() * 1000) - DAY_MS
    for number in range(10):
        producer.send(topic, b"%d" % number, timestamp_ms=start_ms + 1000 * number)
        producer.flush()
    partition = TopicPartition(topic, 0)
    consumer = assign_from_start(consume(), topic)

    exact = consumer.offsets_for_times({partition: start_ms + 3000})[partition]
    between = consumer.offsets_for_times({partition: start_ms + 3001})[partition]
    later = consumer.offsets_for_times({partition: start_ms + 10_000})[partition]

    assert (exact.offset, exact.timestamp) == (3, start_ms + 3000)
    assert (between.offset, between.timestamp) == (4, start_ms + 4000)
    assert later is None
    consumer.seek(partition, between.offset)
    assert [record.value for record in read(consumer, 6)] == [b"4", b"5", b"6", b"7", b"8", b"9"]


def test_beginning_and_end_offsets_are_reported(
    admin: KafkaAdminClient, producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic(partitions=2)
    stamped_ms = int(time.time() * 1000)
    for number in range(7):
        producer.send(topic, b"x", partition=0, timestamp_ms=stamped_ms + (number == 3))
    producer.flush()
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    assert consume().beginning_offsets([first, second]) == {first: 0, second: 0}
    assert consume().end_offsets([first, second]) == {first: 7, second: 0}
    (newest,) = admin.list_partition_offsets({first: OffsetSpec.MAX_TIMESTAMP}).values()
    assert (newest.offset, newest.timestamp) == (3, stamped_ms + 1)


def test_read_committed_consumer_reads_what_was_not_in_a_transaction(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic()
    producer.send(topic, b"plain")
    producer.flush()

    consumer = assign_from_start(consume(isolation_level="read_committed"), topic)

    assert [record.value for record in read(consumer, 1)] == [b"plain"]


def test_consumer_without_a_reset_policy_learns_that_its_offset_is_out_of_range(
    create_topic: CreateTopic, consume
) -> None:
    partition = TopicPartition(create_topic(), 0)
    consumer = consume(auto_offset_reset="none")
    consumer.assign([partition])
    consumer.seek(partition, 99)

    with pytest.raises(OffsetOutOfRangeError):
        read(consumer, 1)


def test_group_resumes_where_it_committed(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic()
    for number in range(10):
        producer.send(topic, b"%d" % number)
    producer.flush()
    partition = TopicPartition(topic, 0)
    group = f"group-{topic}"
    first = consume(topic, group_id=group, enable_auto_commit=False)
    assert len(read(first, 10)) == 10

    first.commit({partition: OffsetAndMetadata(4, "half way", -1)})
    first.close()

    second = consume(topic, group_id=group, enable_auto_commit=False)
    assert [record.value for record in read(second, 6)] == [b"4", b"5", b"6", b"7", b"8", b"9"]
    assert second.committed(partition) == 4
    assert second.committed(partition, metadata=True).metadata == "half way"


def test_group_shares_partitions_as_members_come_and_go(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic(partitions=6)
    watch = GroupWatch()

    def join(name: str) -> GroupMember:
        consumer = consume(topic, group_id=f"group-{topic}")

        def poll() -> list[str]:
            # kafka-python 3.0 loses its assignment if a poll ends while the group's leader
            # rejoins because it has just learned of the topic: that poll gets more time.
            timeout_ms = 100 if consumer.assignment() else 1000
            batches = consumer.poll(timeout_ms=timeout_ms).values()
            return [record.value.decode() for batch in batches for record in batch]

        def assignment() -> set[int]:
            return {partition.partition for partition in consumer.assignment()}

        return watch.add(name, poll, assignment, consumer.close)

    def produce(values: list[str]) -> None:
        for number, value in enumerate(values):
            producer.send(topic, value.encode(), partition=number % 6)
        producer.flush()

    watch.require_sharing(join, produce)


def test_static_member_comes_back_without_a_rebalance(
    producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic(partitions=2)
    settings = {"group_id": f"group-{topic}", "group_instance_id": "the-one"}
    producer.send(topic, b"before", partition=0)
    producer.flush()
    first = consume(topic, **settings)
    read(first, 1)
    joined = first.group_metadata()
    first.close()

    producer.send(topic, b"after", partition=1)
    producer.flush()
    second = consume(topic, **settings)

    assert [record.value for record in read(second, 1)] == [b"after"]
    assert second.group_metadata().generation_id == joined.generation_id
    assert second.group_metadata().member_id != joined.member_id


def test_group_is_listed_described_and_deleted(
    admin: KafkaAdminClient, producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic(partitions=2)
    group = f"group-{topic}"
    producer.send(topic, b"x", partition=1)
    producer.flush()
    consumer = consume(topic, group_id=group, client_id="the-member")
    read(consumer, 1)
    consumer.commit()

    described = admin.describe_groups([group])[group]
    assert described["group_state"] == "Stable"
    assert described["protocol_type"] == "consumer"
    assert [member["client_id"] for member in described["members"]] == ["the-member"]
    assert group in {listed["group_id"] for listed in admin.list_groups()}
    assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}

    consumer.close()
    assert admin.describe_groups([group])[group]["group_state"] == "Empty"
    assert admin.list_group_offsets(group)[group][TopicPartition(topic, 1)].offset == 1
    assert admin.delete_groups([group]) == {group: "OK"}
    assert group not in {listed["group_id"] for listed in admin.list_groups()}


def test_records_below_an_offset_are_deleted(
    admin: KafkaAdminClient, producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic()
    for number in range(10):
        producer.send(topic, b"%d" % number)
    producer.flush()
    partition = TopicPartition(topic, 0)

    deleted = admin.delete_records({partition: 6})

    assert deleted[partition]["low_watermark"] == 6
    assert consume().beginning_offsets([partition]) == {partition: 6}
    records = read(assign_from_start(consume(), topic), 4)
    assert [record.value for record in records] == [b"6", b"7", b"8", b"9"]


def test_added_partitions_take_records(
    admin: KafkaAdminClient, producer: KafkaProducer, create_topic: CreateTopic, consume
) -> None:
    topic = create_topic()

    admin.create_partitions({topic: 3})
    admin.wait_for_topics([topic])

    (described,) = admin.describe_topics([topic])
    assert len(described["partitions"]) == 3
    fresh = consume()
    assert fresh.partitions_for_topic(topic) == {0, 1, 2}
    producer.close()
    with KafkaProducer(bootstrap_servers=fresh.config["bootstrap_servers"]) as second:
        assert second.send(topic, b"x", partition=2).get(timeout=READ_SECONDS_MAX).offset == 0


def test_topic_settings_are_described_and_altered(
    admin: KafkaAdminClient, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"retention.ms": "3600000"})

    def describe() -> dict[str, dict[str, object]]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        return admin.describe_configs([resource], config_filter="all")["topic"][topic]

    before = describe()
    assert before["retention.ms"]["value"] == "3600000"
    assert before["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"
    assert before["cleanup.policy"]["value"] == "delete"
    assert before["cleanup.policy"]["config_source"] == "DEFAULT_CONFIG"
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "7200000"})
    assert admin.alter_configs([changed]) == {"topic": {topic: "OK"}}
    assert describe()["retention.ms"]["value"] == "7200000"


def test_broker_settings_are_described(admin: KafkaAdminClient) -> None:
    broker_id = str(admin.describe_cluster()["brokers"][0]["broker_id"])
    resource = ConfigResource(ConfigResourceType.BROKER, broker_id)

    settings = admin.describe_configs([resource], config_filter="all")["broker"][broker_id]

    assert settings["message.max.bytes"]["value"] == "1048588"
    assert settings["log.retention.hours"]["value"] == "168"
