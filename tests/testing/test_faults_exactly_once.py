"""Idempotent producers under many faults at once: every record is there once, in its order."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest
from kafka import KafkaProducer

from odradek.testing import Broker, faults

pytestmark = pytest.mark.clients

RECORDS = 80
SECONDS_MAX = 60
SEED = 20
TOPIC = "orders"
PROBABILITY = 0.08

OF_THE_LINE = (
    faults.lose_answer("Produce", topic=TOPIC),
    faults.disconnect("Produce", topic=TOPIC),
    faults.truncate_answer("Produce", size=9, topic=TOPIC),
    faults.delay("Produce", 0.02, topic=TOPIC),
    faults.delay_answer("Produce", 0.02, topic=TOPIC),
)
OF_THE_BROKER = (
    faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic=TOPIC),
    faults.answer("Produce", "REQUEST_TIMED_OUT", after_applying=True, topic=TOPIC),
)
CASES = [
    pytest.param(OF_THE_LINE, 5, id="faults of the line, five requests under way"),
    # No leader refuses one request and takes those that were sent behind it.
    pytest.param(
        (*OF_THE_LINE, *OF_THE_BROKER),
        1,
        marks=pytest.mark.soak,
        id="all faults, one request under way",
    ),
]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic(TOPIC)
        yield broker


def add(broker: Broker, kinds: tuple[faults.Fault, ...]) -> None:
    for seed, fault in enumerate(kinds, SEED):
        broker.faults.add(fault.with_probability(PROBABILITY, seed))


def check(broker: Broker) -> None:
    struck = {fault.fault.action: fault.strikes for fault in broker.faults.list()}
    assert min(struck.values()) > 0, struck
    assert [int(record.value) for record in broker.read(TOPIC)] == list(range(RECORDS))


@pytest.mark.parametrize(("kinds", "in_flight"), CASES)
def test_of_kafka_python(broker: Broker, kinds: tuple[faults.Fault, ...], in_flight: int) -> None:
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        enable_idempotence=True,
        max_in_flight_requests_per_connection=in_flight,
        batch_size=64,  # one record each, so that there are requests to strike
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=50,
    )
    producer.send(TOPIC, b"0").get(SECONDS_MAX)
    add(broker, kinds)
    for sent in [producer.send(TOPIC, b"%d" % number) for number in range(1, RECORDS)]:
        sent.get(SECONDS_MAX)
    producer.close()
    check(broker)


@pytest.mark.parametrize(("kinds", "in_flight"), CASES)
def test_of_confluent_kafka(
    broker: Broker, kinds: tuple[faults.Fault, ...], in_flight: int
) -> None:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "max.in.flight": in_flight,
            "batch.num.messages": 1,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
        }
    )
    producer.produce(TOPIC, b"0")
    assert producer.flush(SECONDS_MAX) == 0
    add(broker, kinds)
    for number in range(1, RECORDS):
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(SECONDS_MAX) == 0
    check(broker)
