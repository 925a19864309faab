"""Disks that are full or broken at a test's word, as real clients meet them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError, KafkaStorageError

from odradek.testing import Broker
from odradek.testing.control.client import ControlError
from odradek.testing.waiting import wait_until

WAIT_SECONDS_MAX = 60.0


@pytest.fixture
def producer(broker: Broker) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retries=0)
    yield producer
    producer.close()


def test_a_full_disk_refuses_records_and_keeps_what_it_has(
    broker: Broker, producer: KafkaProducer
) -> None:
    broker.create_topic("orders")
    producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
    with broker.full_disk():
        with pytest.raises(KafkaError) as refused:
            producer.send("orders", b"refused").get(WAIT_SECONDS_MAX)
        assert isinstance(refused.value, KafkaStorageError) or "Storage" in str(refused.value)
        assert broker.requests.of("Produce", error="KAFKA_STORAGE_ERROR").count() >= 1
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        )
        values = [
            record.value
            for each in consumer.poll(WAIT_SECONDS_MAX * 1000).values()
            for record in each
        ]
        consumer.close()
        assert values == [b"before"]


def test_records_are_taken_again_once_there_is_room(broker: Broker) -> None:
    broker.create_topic("orders")
    delivered: list[str] = []
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 20, "linger.ms": 0}
    )
    broker.fill_disk(room_bytes=10)
    producer.produce(
        "orders", b"patient", on_delivery=lambda error, _: delivered.append(str(error))
    )
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not broker.requests.of("Produce", error="KAFKA_STORAGE_ERROR").count():
        assert time.monotonic() < deadline
        producer.poll(0.01)
    assert broker.read("orders") == []
    broker.free_disk()
    assert producer.flush(WAIT_SECONDS_MAX) == 0
    assert delivered == ["None"]
    assert [record.value for record in broker.read("orders")] == [b"patient"]


def test_nothing_of_a_refused_batch_is_left_after_a_restart() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retries=0)
        producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
        broker.fill_disk(room_bytes=20)
        with pytest.raises(KafkaError):
            producer.send("orders", b"half of it fits").get(WAIT_SECONDS_MAX)
        producer.close()
        broker.restart(clean=False)
        assert [record.value for record in broker.read("orders")] == [b"before"]


def leaders(broker: Broker) -> list[int]:
    return [each.leader for each in broker.topic("orders").partitions]


def test_a_broken_log_directory_takes_its_partitions_offline_only() -> None:
    with Broker(log_dirs=2) as broker:
        broker.create_topic("orders", partitions=4)
        lost_path = broker.fail_log_dir(1)
        broker.wait_until(
            lambda each: sorted(leaders(each)) == [-1, -1, 1, 1], timeout=WAIT_SECONDS_MAX
        )
        kept = [partition for partition, leader in enumerate(leaders(broker)) if leader == 1]
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for partition in kept:
            producer.send("orders", b"value", partition=partition).get(WAIT_SECONDS_MAX)
        producer.close()
        assert lost_path.endswith("data-2")
        assert f"{lost_path} is offline until a restart" in broker.log
        with pytest.raises(ControlError, match="is offline already"):
            broker.fail_log_dir(1)
        with pytest.raises(ControlError, match="has 2 log directories: there is no number 2"):
            broker.fail_log_dir(2)
        broker.restart()
        broker.wait_until(lambda each: leaders(each) == [1, 1, 1, 1], timeout=WAIT_SECONDS_MAX)


def test_a_broker_ends_with_its_last_log_directory() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        broker.fail_log_dir()
        wait_until(lambda: not broker.is_running, WAIT_SECONDS_MAX, lambda: broker.log)
        assert "outage: the disk of" in broker.log
