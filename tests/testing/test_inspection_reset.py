"""A broker that is emptied: nothing is left, it is quick, and connected clients live on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import Broker
from odradek.testing.inspection import topic_admin

WAIT_SECONDS_MAX = 60.0
TOPICS = 100
TRIES = 6
BROKER_SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
}


def test_a_hundred_topics_are_gone_sooner_than_they_were_made(broker: Broker) -> None:
    made, took = [], []
    for number in range(TRIES):
        names = [f"topic-{number}-{index}" for index in range(TOPICS)]
        began = processor_milliseconds(broker)
        topic_admin.create_topics.on(broker.control())(names)
        made.append(processor_milliseconds(broker) - began)
        assert broker.topics() == sorted(names)
        began = processor_milliseconds(broker)
        broker.reset()
        took.append(processor_milliseconds(broker) - began)
        assert broker.topics(internal=True) == []
    assert min(took) < min(made) / 2, (took, made)


def processor_milliseconds(broker: Broker) -> float:
    """What the broker has had of the processor: it waits for nothing else, but others may be
    busy, and it for its turn."""
    return int(Path(f"/proc/{broker.pid}/schedstat").read_text().split()[0]) / 1e6


def test_nothing_is_left_of_groups_transactions_and_records(broker: Broker) -> None:
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(WAIT_SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("orders", b"value")
    producer.flush(WAIT_SECONDS_MAX)
    producer.commit_transaction(WAIT_SECONDS_MAX)
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
    )
    assert consumer.partitions_for_topic("orders") == {0}  # before it joins, and shares it
    consumer.subscribe(["orders"])
    assert consumer.poll(timeout_ms=WAIT_SECONDS_MAX * 1000)
    consumer.close()
    assert broker.groups() == ["g"]
    assert broker.producers("orders") != []
    del producer  # it might ask for something by itself
    broker.reset()
    assert (broker.topics(internal=True), broker.groups(), broker.transactions()) == ([], [], [])
    assert broker.requests.lines() == []
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert admin.list_topics(timeout=WAIT_SECONDS_MAX).topics == {}
    broker.create_topic("orders")
    assert broker.read("orders") == []
    assert broker.producers("orders") == []
    assert broker.group("g").state == "Dead"
    broker.restart()
    assert broker.topics() == ["orders"]


def test_a_connected_producer_goes_on_over_its_connection(broker: Broker) -> None:
    broker.create_topic("orders")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="mine")
    producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
    before = broker.requests.of("Produce", client_id="mine").last()
    broker.reset()
    broker.create_topic("orders")
    producer.send("orders", b"after").get(WAIT_SECONDS_MAX)
    after = broker.requests.of("Produce", client_id="mine").last()
    assert before is not None
    assert after is not None
    assert before.peer == after.peer
    assert [record.value for record in broker.read("orders")] == [b"after"]
    producer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_connected_consumer_joins_again_and_reads_on(broker: Broker, protocol: str) -> None:
    broker.create_topic("orders")
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": f"g-{protocol}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 100,
    }
    if protocol == "classic":
        settings |= {"heartbeat.interval.ms": 100}
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
    assert read_one(consumer) == b"before"
    broker.reset()
    broker.create_topic("orders")
    for _ in range(2):  # whether it begins anew, or where it was in the topic of that name
        producer.send("orders", b"after").get(WAIT_SECONDS_MAX)
    if protocol == "consumer":  # librdkafka takes it for fatal that its group is gone
        with pytest.raises(KafkaException):
            read_on(consumer)
    else:
        assert read_one(consumer) == b"after"
    producer.close()
    consumer.close()


def read_on(consumer: Consumer) -> None:
    """Read until it fails; it may be given records before its heartbeat hears why."""
    while True:
        assert read_one(consumer) == b"after"


def read_one(consumer: Consumer) -> bytes:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is None:
            value: bytes = message.value()
            return value
        if message.error().code() == KafkaError._FATAL:
            raise KafkaException(message.error())
    raise AssertionError("no record came")


def test_a_producer_of_a_transaction_that_is_gone_gets_an_error(broker: Broker) -> None:
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(WAIT_SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("orders", b"value")
    producer.flush(WAIT_SECONDS_MAX)
    broker.reset()
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_SECONDS_MAX)
