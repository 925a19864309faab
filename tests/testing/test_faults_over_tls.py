"""Faults of connections that speak TLS: clients see what they see without it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import CorruptRecordError
from support.fault_clients import PATIENT_MS
from support.fault_trials import SEND_TRIALS, Outcome, SendTrial

from odradek.testing import Broker, faults

pytestmark = pytest.mark.clients

TRIALS = [trial for trial in SEND_TRIALS if trial.trigger.name == "on(2)"]
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(tls=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def outcomes(broker: Broker) -> dict[str, Outcome | Exception]:
    def run(trial: SendTrial) -> Outcome | Exception:
        try:
            return trial.run(broker)
        except Exception as error:  # it is tried again
            return error

    with ThreadPoolExecutor(len(TRIALS)) as threads:
        return dict(zip(map(str, TRIALS), threads.map(run, TRIALS), strict=True))


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_a_send_that_is_struck_comes_to_what_the_table_says(
    trial: SendTrial, broker: Broker, outcomes: dict[str, Outcome | Exception]
) -> None:
    outcome = outcomes[str(trial)]
    if outcome != trial.expected():
        outcome = trial.run(broker, PATIENT_MS)
    assert outcome == trial.expected()


def test_new_connections_are_reset_and_then_served(broker: Broker) -> None:
    broker.create_topic("refused")
    with broker.faults.during(faults.refuse_connections().times(2)) as fault:
        producer = KafkaProducer(
            **broker.client_settings("kafka-python"),
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
        )
        try:
            assert producer.send("refused", b"x").get(SECONDS_MAX).offset == 0
        finally:
            producer.close(timeout=0)
        assert fault.strikes == 2


def test_broken_records_are_found_by_their_checksum(broker: Broker) -> None:
    broker.create_topic("broken")
    settings = broker.client_settings("kafka-python")
    producer = KafkaProducer(**settings)
    producer.send("broken", b"x" * 100).get(SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(
        "broken",
        **settings,
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS_MAX * 1000,
    )
    try:
        with (
            broker.faults.during(faults.corrupt_records(topic="broken").once()),
            pytest.raises(CorruptRecordError),
        ):
            next(consumer)
    finally:
        consumer.close()
