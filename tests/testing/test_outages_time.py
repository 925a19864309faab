"""A broker's time, advanced: what has to end by it ends at once, and nothing else does."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import Broker, faults
from odradek.testing.conditions import group_gone, transaction_is

WAIT_SECONDS_MAX = 60.0
SESSION_SECONDS = 240
HOUR = 3600
BROKER_SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
}

NOT_HEARD_OF = faults.disconnect(client_id="reader")
"""Its heartbeats would be counted from the moment they come at, and it would join again."""


def poll_until_stable(broker: Broker, consumer: ConfluentConsumer) -> None:
    """Have a consumer do its work until its group is stable."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while broker.group("g").state != "Stable":
        assert time.monotonic() < deadline, "\n".join(broker.requests.lines())
        consumer.poll(0.05)


def test_the_session_of_a_classic_member_ends_and_it_joins_again(broker: Broker) -> None:
    broker.create_topic("orders")
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "session.timeout.ms": SESSION_SECONDS * 1000,
            "heartbeat.interval.ms": 200,
            "client.id": "reader",
        }
    )
    consumer.subscribe(["orders"])
    poll_until_stable(broker, consumer)
    (before,) = broker.group("g").members
    with broker.faults.during(NOT_HEARD_OF):
        broker.advance_time(SESSION_SECONDS - 100)
        assert broker.group("g").members == (before,)
        broker.advance_time(101)
        assert broker.group("g").members == ()
    poll_until_stable(broker, consumer)
    consumer.close()


def test_the_session_of_a_consumer_group_member_ends(broker: Broker) -> None:
    broker.create_topic("orders")
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "group.protocol": "consumer",
            "client.id": "reader",
        }
    )
    consumer.subscribe(["orders"])
    poll_until_stable(broker, consumer)
    group = broker.group("g")
    assert (group.kind, [member.client_id for member in group.members]) == ("consumer", ["reader"])
    with broker.faults.during(NOT_HEARD_OF):
        broker.advance_time(46)
        assert broker.group("g").members == ()
    poll_until_stable(broker, consumer)
    assert broker.group("g").generation > group.generation
    consumer.close()


def test_an_open_transaction_is_aborted_and_its_producer_fenced(broker: Broker) -> None:
    broker.create_topic("orders")
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "shipper",
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(WAIT_SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("orders", b"value")
    assert producer.flush(WAIT_SECONDS_MAX) == 0
    broker.advance_time(500)
    broker.wait_until(transaction_is("shipper", "Ongoing"))
    broker.advance_time(101)
    aborted = broker.transaction("shipper")
    assert aborted is not None
    assert aborted.state == "CompleteAbort"
    assert [record.value for record in broker.read("orders")] == [b"value"]
    assert broker.read("orders", committed_only=True) == []
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(WAIT_SECONDS_MAX)
    assert refused.value.args[0].fatal() or refused.value.args[0].txn_requires_abort()


def test_records_past_their_retention_are_gone(broker: Broker) -> None:
    broker.create_topic("short", config={"retention.ms": "600000"})
    broker.create_topic("long")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for topic in ("short", "long"):
        producer.send(topic, b"value").get(WAIT_SECONDS_MAX)
    broker.advance_time(minutes=5)
    assert len(broker.read("short")) == 1
    broker.advance_time(minutes=6)
    assert broker.read("short") == []
    assert broker.topic("short").partitions[0].log_start_offset == 1
    assert len(broker.read("long")) == 1
    producer.close()


def test_committed_offsets_are_forgotten(broker: Broker) -> None:
    broker.create_topic("orders")
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
    )
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"value").get(WAIT_SECONDS_MAX)
    while not consumer.poll(timeout_ms=1000):
        pass
    consumer.close()
    producer.close()
    assert list(broker.group("g").offsets.values()) == [1]
    broker.advance_time(days=6)
    assert list(broker.group("g").offsets.values()) == [1]
    broker.advance_time(days=2)
    broker.wait_until(group_gone("g"))


def test_clients_keep_their_connections_whatever_time_passes(broker: Broker) -> None:
    broker.create_topic("orders")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="mine")
    producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
    first = broker.requests.of("Produce", client_id="mine").last()
    broker.advance_time(hours=10)
    producer.send("orders", b"after").get(WAIT_SECONDS_MAX)
    second = broker.requests.of("Produce", client_id="mine").last()
    producer.close()
    assert first is not None
    assert second is not None
    assert first.number < second.number
    assert first.peer == second.peer


def test_a_clock_that_is_wrong_shows_in_timestamps_only(broker: Broker) -> None:
    broker.create_topic("stamped", config={"message.timestamp.type": "LogAppendTime"})
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    now = broker.clock()
    broker.set_clock_wrong(-10 * HOUR)
    try:
        producer.send("stamped", b"value").get(WAIT_SECONDS_MAX)
        (record,) = broker.read("stamped")
        assert abs(record.timestamp / 1000 - (now - 10 * HOUR)) < 60
    finally:
        broker.set_clock_wrong(0)
    assert abs(broker.clock() - now) < 60
    producer.close()


def test_time_does_not_go_back(broker: Broker) -> None:
    with pytest.raises(ValueError, match="time cannot go back by 5 s"):
        broker.advance_time(-5)
    with pytest.raises(ValueError, match="more than the hundred years"):
        broker.advance_time(days=40_000)


def test_time_goes_on_over_a_restart() -> None:
    with Broker() as broker:
        ahead = broker.advance_time(hours=5)
        assert ahead == 5 * HOUR
        broker.restart(clean=False)
        assert abs(broker.clock() - time.time() - ahead) < 60
        assert "18000.000 s pass at once for this broker" in broker.log
