"""Compaction as clients see it: what is superseded goes, offsets and the latest values stay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

pytestmark = pytest.mark.clients

QUIET = {"log_level": 2}
SECONDS_MAX = 100.0
KEYS = 20
ROUNDS = 20
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1",  # each batch closes the segment before it
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}

Records = dict[int, tuple[str, str | None]]


@pytest.fixture(scope="module")
def compacting_broker(start_module_broker):
    return start_module_broker(settings={"log.cleaner.backoff.ms": "50"})


@pytest.fixture
def create_topic(compacting_broker) -> Callable[..., None]:
    def create(topic: str, configs: dict[str, str]) -> None:
        create_on(compacting_broker.bootstrap, topic, configs)

    return create


def create_on(bootstrap: str, topic: str, configs: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    target = NewTopic(topic, num_partitions=1, replication_factor=1, config=configs)
    admin.create_topics([target])[topic].result(SECONDS_MAX)


def write_rounds(bootstrap: str, topic: str, compression: str = "none") -> None:
    """Every key again and again; the last round deletes half of them."""
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": compression, **QUIET})
    now_ms = time.time_ns() // 1_000_000 - 10 * ROUNDS
    for number in range(ROUNDS):
        is_last = number == ROUNDS - 1
        for key in range(KEYS):
            value = None if is_last and key % 2 else f"{key}: {number}"
            timestamp = now_ms + 10 * number  # the next round finds this one's segment old
            producer.produce(topic, key=f"key-{key}", value=value, timestamp=timestamp)
        producer.flush(SECONDS_MAX)
        producer.produce(topic, key="round", value=str(number), timestamp=timestamp + 5)
        producer.flush(SECONDS_MAX)


def read_until(bootstrap: str, topic: str, is_done: Callable[[Records], bool]) -> Records:
    """Read the whole partition again and again until what is there satisfies."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    try:
        while True:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            records = {
                message.offset(): (
                    message.key().decode(),
                    None if message.value() is None else message.value().decode(),
                )
                for message in messages_to_the_end(consumer)
            }
            if is_done(records):
                return records
            consumer.unassign()
    finally:
        consumer.close()


def messages_to_the_end(consumer: Consumer) -> Iterator[Message]:
    while True:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"nothing came in {SECONDS_MAX:.0f} s"
        if message.error():
            return
        yield message


def is_compacted(records: Records) -> bool:
    """Whether only what may not be cleaned is there more than once: the active segment."""
    keys = [key for key, _ in records.values()]
    return len(keys) <= len(set(keys)) + KEYS + 1


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_compacted_topic_keeps_the_latest_value_of_each_key(
    compacting_broker, create_topic, topic: str, compression: str
) -> None:
    create_topic(topic, COMPACTED)
    write_rounds(compacting_broker.bootstrap, topic, compression)

    records = read_until(compacting_broker.bootstrap, topic, is_compacted)

    assert list(records) == sorted(records)
    assert max(records) == ROUNDS * (KEYS + 1) - 1
    latest = {key: value for key, value in records.values() if value is not None}
    for key, value in records.values():
        if value is None:
            latest.pop(key, None)
    assert latest == {
        "round": str(ROUNDS - 1),
        **{f"key-{key}": f"{key}: {ROUNDS - 1}" for key in range(0, KEYS, 2)},
    }
    for offset, (key, value) in records.items():
        number, position = divmod(offset, KEYS + 1)
        assert key == ("round" if position == KEYS else f"key-{position}")
        assert value in (None, str(number), f"{position}: {number}")


def test_tombstones_go_in_the_end(compacting_broker, create_topic, topic: str) -> None:
    create_topic(topic, COMPACTED)
    write_rounds(compacting_broker.bootstrap, topic)
    producer = Producer({"bootstrap.servers": compacting_broker.bootstrap, **QUIET})

    def has_no_tombstone(records: Records) -> bool:
        # something new to clean: a round begins only where there is
        producer.produce(topic, key="round", value="another")
        producer.flush(SECONDS_MAX)
        return all(value is not None for _, value in records.values())

    records = read_until(compacting_broker.bootstrap, topic, has_no_tombstone)

    kept = {key for key, _ in records.values()}
    assert kept == {"round", *(f"key-{key}" for key in range(0, KEYS, 2))}


def test_a_topic_is_compacted_from_the_moment_its_policy_says_so(
    compacting_broker, create_topic, topic: str
) -> None:
    create_topic(topic, {**COMPACTED, "cleanup.policy": "delete"})
    bootstrap = compacting_broker.bootstrap
    write_rounds(bootstrap, topic)
    written = ROUNDS * (KEYS + 1)
    assert len(read_until(bootstrap, topic, lambda records: True)) == written

    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)

    records = read_until(bootstrap, topic, is_compacted)
    assert max(records) == written - 1


def test_what_was_compacted_is_there_after_a_kill(
    compacting_broker, create_topic, topic: str
) -> None:
    create_topic(topic, COMPACTED)
    write_rounds(compacting_broker.bootstrap, topic)
    before = read_until(compacting_broker.bootstrap, topic, is_compacted)

    compacting_broker.kill()
    compacting_broker.start()

    after = read_until(compacting_broker.bootstrap, topic, lambda records: True)
    assert set(after.items()) <= set(before.items())  # a later round may have gone on
    assert max(after) == max(before)


def test_groups_keep_their_offsets_when_their_topic_is_compacted(start_broker, topic: str) -> None:
    broker = start_broker(
        settings={
            "log.cleaner.backoff.ms": "50",
            "log.cleaner.min.cleanable.ratio": "0.01",
            "log.roll.ms": "1",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
        }
    )
    create_on(broker.bootstrap, topic, {})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "workers", **QUIET})
    for offset in range(100):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)

    def is_mostly_gone(records: Records) -> bool:
        return len(records) < 50

    read_until_any(broker.bootstrap, "__consumer_offsets", is_mostly_gone)
    broker.restart()

    (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS_MAX)
    consumer.close()
    assert committed.offset == 99


def read_until_any(bootstrap: str, topic: str, is_done: Callable[[Records], bool]) -> None:
    """The same for records whose keys and values are no text."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "spies",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    while True:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found: Records = {each.offset(): ("", None) for each in messages_to_the_end(consumer)}
        if is_done(found):
            break
        consumer.unassign()
    consumer.close()


def test_a_broker_stops_at_once_while_it_compacts(start_broker, topic: str) -> None:
    broker = start_broker(
        settings={
            "log.cleaner.backoff.ms": "50",
            "log.cleaner.io.max.bytes.per.second": "4000",
        }
    )
    create_on(broker.bootstrap, topic, COMPACTED)
    write_rounds(broker.bootstrap, topic)

    def is_copying(records: Records) -> bool:
        if any(broker.data_dir.glob(f"{topic}-0/*.cleaned")):
            return True
        write_rounds(broker.bootstrap, topic)  # it may have begun and ended between two looks
        return False

    before = read_until(broker.bootstrap, topic, is_copying)
    assert broker.stop() == 0  # which raises where it takes too long
    broker.start()
    after = read_until(broker.bootstrap, topic, lambda records: True)
    assert set(after.items()) <= set(before.items())
    assert max(after) == max(before)


def test_a_changed_backoff_counts_at_once(start_broker, topic: str) -> None:
    broker = start_broker(settings={"log.cleaner.backoff.ms": "3600000"})
    create_on(broker.bootstrap, topic, COMPACTED)
    write_rounds(broker.bootstrap, topic)
    broker.restart()  # so that all is there at the look soon after the start
    read_until(broker.bootstrap, topic, is_compacted)
    write_rounds(broker.bootstrap, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    (broker_id,) = admin.list_topics(timeout=SECONDS_MAX).brokers
    change = ConfigEntry(
        "log.cleaner.backoff.ms", "50", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.BROKER, str(broker_id), incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)
    assert max(read_until(broker.bootstrap, topic, is_compacted)) == 2 * ROUNDS * (KEYS + 1) - 1
