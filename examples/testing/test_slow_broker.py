"""A slow broker: answers come, but late.

Does your code give up in time, and say so? And does it bear a broker that is merely slow?

    pip install pytest kafka-python    # and odradek, as README.md says
    pytest test_slow_broker.py
"""

import time

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from odradek.testing import faults


class TooSlow(Exception):
    """The order could not be confirmed in time; it may or may not have been placed."""


def place_order(producer: KafkaProducer, topic: str, order: bytes, seconds: float) -> None:
    """The code under test: the customer waits no longer than this."""
    try:
        producer.send(topic, order).get(timeout=seconds)
    except KafkaTimeoutError as error:
        raise TooSlow from error


@pytest.fixture
def producer(kafka):
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    yield producer
    producer.close(timeout=30)


def test_a_customer_does_not_wait_for_a_slow_broker(kafka, kafka_topic, producer):
    place_order(producer, kafka_topic, b"one book", 20)
    slow = faults.delay_answer("Produce", seconds=6, topic=kafka_topic).once()
    with kafka.faults.during(slow):
        began = time.monotonic()
        with pytest.raises(TooSlow):
            place_order(producer, kafka_topic, b"another book", 0.5)
        assert time.monotonic() - began < 6


def test_a_slow_line_loses_nothing(kafka, kafka_topic, producer):
    slow = faults.throttle("Produce", bytes_per_second=20_000, topic=kafka_topic)
    with kafka.faults.during(slow):
        place_order(producer, kafka_topic, bytes(10_000), 20)
    assert len(kafka.read(kafka_topic)) == 1
