"""Waiting for conditions: they come about with what clients do, and say what was seen if not."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import Consumer
from kafka import KafkaProducer

from odradek.testing import Broker
from odradek.testing.conditions import (
    NotReached,
    group_empty,
    group_gone,
    group_stable,
    lag_is,
    no_lag,
    record_matching,
    records_in,
    requests,
    topic_exists,
    topic_gone,
    transaction_is,
)

WAIT_SECONDS_MAX = 60.0
BROKER_SETTINGS = {"auto.create.topics.enable": "false"}
BROKER_TOPICS = {"orders": 1}


def test_a_consumer_in_a_thread_is_waited_for(broker: Broker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    stop = threading.Event()

    def consume() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 20,
            }
        )
        consumer.subscribe(["orders"])
        while not stop.is_set():
            consumer.poll(0.02)
        consumer.close()

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        broker.wait_until(group_stable("g", members=1), timeout=WAIT_SECONDS_MAX)
        for number in range(20):
            producer.send("orders", b"%d" % number)
        producer.flush(WAIT_SECONDS_MAX)
        broker.wait_until(records_in("orders", 20), no_lag("g"), timeout=WAIT_SECONDS_MAX)
        assert broker.group("g").offsets == {("orders", 0): 20}
    finally:
        stop.set()
        thread.join(WAIT_SECONDS_MAX)
    broker.wait_until(group_empty("g"), timeout=WAIT_SECONDS_MAX)
    producer.close()


def test_records_are_matched_by_key_value_and_function(broker: Broker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"value", key=b"key", headers=[("trace", b"7")]).get(WAIT_SECONDS_MAX)
    producer.close()
    broker.wait_until(
        record_matching("orders", key="key", value=b"value"),
        record_matching("orders", where=lambda record: ("trace", b"7") in record.headers),
        requests("Produce", topic="orders"),
        topic_exists("orders"),
        lambda each: each.topic("orders").partitions[0].high_watermark == 1,
        timeout=WAIT_SECONDS_MAX,
    )


@pytest.mark.parametrize(
    ("condition", "requested", "seen"),
    [
        (group_stable("g", 2), "group g is stable with 2 members", "it is Dead, generation 0"),
        (no_lag("g"), "group g is not behind", "it has committed no offsets"),
        (lag_is("g", 5), "group g is at most 5 behind", "it has committed no offsets"),
        (
            record_matching("orders", value="v"),
            "topic orders has a record with value='v'",
            "orders has no records to read",
        ),
        (records_in("orders", 2), "has at least 2 records", "no records to read"),
        (topic_exists("none"), "there is a topic none", "the topics are orders"),
        (topic_gone("orders"), "there is no topic orders", "the topics are orders"),
        (records_in("none", 1, partition=0), "partition none-0", "has no replica of none-0"),
        (requests("Heartbeat", 3), "at least 3 Heartbeat requests came", "seen: 0 came"),
        (transaction_is("t", "Ongoing"), "transactional id t is Ongoing", "does not know it"),
        (len, "len", "object of type"),
    ],
    ids=lambda value: str(value) if not isinstance(value, str) else "",
)
def test_a_wait_in_vain_says_what_was_requested_and_what_was_seen(
    broker: Broker, condition, requested: str, seen: str
) -> None:
    if condition is len:
        with pytest.raises(TypeError, match=seen):
            broker.wait_until(condition, timeout=0.01)
        return
    with pytest.raises(NotReached) as reported:
        broker.wait_until(topic_exists("orders"), condition, timeout=0.01)
    text = str(reported.value)
    assert "not reached within 0.01 s" in text
    assert "reached: there is a topic orders" in text
    assert requested in text
    assert seen in text


def test_a_group_that_is_gone(broker: Broker) -> None:
    broker.wait_until(group_gone("g"))


def test_a_failed_wait_is_a_failed_assertion_and_a_timeout(broker: Broker) -> None:
    for kind in (AssertionError, TimeoutError):
        with pytest.raises(kind):
            broker.wait_until(group_empty("g"), timeout=0)
    with pytest.raises(ValueError, match="say what to wait for"):
        broker.wait_until()
