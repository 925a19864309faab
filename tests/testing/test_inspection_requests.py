"""The request log: what real clients sent can be counted, filtered and read."""

from __future__ import annotations

import re

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Assigned

from odradek.testing import Broker
from odradek.testing.control.client import ControlError
from odradek.testing.inspection import request_log, requests

WAIT_SECONDS_MAX = 60.0
BROKER_SETTINGS = {"auto.create.topics.enable": "false"}
BROKER_TOPICS = {"orders": 2, "bills": 1}


def test_requests_are_counted_by_what_they_name(broker: Broker) -> None:
    one = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="one")
    other = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "other"})
    for partition in (0, 0, 1):
        one.send("orders", b"value", partition=partition).get(WAIT_SECONDS_MAX)
    other.produce("bills", b"value")
    assert other.flush(WAIT_SECONDS_MAX) == 0
    produced = broker.requests.of("Produce")
    assert produced.count() == 4
    assert produced.of(client_id="one").count() == 3
    assert produced.of(topic="orders", partition=0).count() == 2
    assert produced.of(topic="orders", partition=1).count() == 1
    assert produced.of(partition=0).count() == 3
    assert produced.of(topic="bills", client_id="one").count() == 0
    assert broker.requests.of("produce", topic="bills").last().client_id == "other"
    one.close()


def test_requests_of_groups_are_found_by_the_group(broker: Broker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"value", partition=0).get(WAIT_SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.assign([Assigned("orders", 0)])
    assert consumer.poll(timeout_ms=WAIT_SECONDS_MAX * 1000)
    consumer.commit()
    (committed,) = broker.requests.of("OffsetCommit", group="g").list()
    assert committed.topics == ("orders",)
    assert committed.errors == ()
    assert committed.took is not None
    assert broker.requests.of("OffsetCommit", group="other").count() == 0
    fetched = broker.requests.of("Fetch", topic="orders")
    assert fetched.count() >= 1
    consumer.close()


def test_errors_in_answers_are_found(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert admin.list_topics("none", timeout=WAIT_SECONDS_MAX).topics["none"].error is not None
    refused = broker.requests.of("Metadata", error="UNKNOWN_TOPIC_OR_PARTITION")
    assert refused.count() >= 1
    assert refused.last().topics == ("none",)


def test_a_mark_parts_what_came_before_and_after(broker: Broker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="mine")
    producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
    mark = broker.requests.mark()
    producer.send("orders", b"after").get(WAIT_SECONDS_MAX)
    assert broker.requests.since(mark).of("Produce").count() == 1
    (line,) = [line for line in broker.requests.lines(since=mark) if "Produce" in line]
    shown = (
        r"#\d+ \d\d:\d\d:\d\d\.\d{3} Produce v\d+ from mine at 127\.0\.0\.1:\d+ on orders-[01], "
    )
    assert re.fullmatch(shown + r"answered after \d+ ms", line)
    broker.requests.clear()
    assert broker.requests.of("Produce").count() == 0
    assert broker.requests.mark() > mark
    producer.close()


@pytest.mark.parametrize(
    ("requested", "sentence"),
    [
        ({"api": "Prodcue"}, "there is no API 'Prodcue': did you mean 'Produce'"),
        ({"error": "NOT_LEADER"}, "there is no error 'NOT_LEADER': did you mean 'NOT_LEADER_OR_F"),
    ],
    ids=["api", "error"],
)
def test_a_wrong_name_is_reported_at_once(broker: Broker, requested, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        broker.requests.of(**requested)


def test_requests_that_were_forgotten_are_not_passed_over_in_silence(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    capacity = request_log.CAPACITY
    control = broker.control()
    requests.remember.on(control)(5)
    try:
        for _ in range(6):
            producer.produce("orders", b"value")
            assert producer.flush(WAIT_SECONDS_MAX) == 0
        assert len(broker.requests.lines()) == 5
        with pytest.raises(ControlError, match="remembers its last 5 requests"):
            broker.requests.of("Produce").count()
        del producer  # it might ask for something by itself
        mark = broker.requests.mark()
        assert broker.requests.since(mark).count() == 0
    finally:
        requests.remember.on(control)(capacity)
