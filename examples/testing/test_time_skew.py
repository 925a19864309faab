"""Time skew: the clocks of client and broker differ.

A broker does not take records from the future, so a client cannot write to one whose clock is
behind. One whose clock is ahead finds old what was written just now: a week's retention is over.

    pip install pytest kafka-python    # and odradek, as README.md says
    pytest test_time_skew.py
"""

import pytest
from kafka import KafkaProducer
from kafka.errors import InvalidTimestampError

HOUR_SECONDS = 3600


def send(address: str, topic: str, value: bytes) -> int:
    """The code under test: returns where the record was written."""
    with KafkaProducer(bootstrap_servers=address) as producer:
        return producer.send(topic, value).get(timeout=20).offset


def test_a_broker_whose_clock_is_behind_takes_no_records(kafka_broker, kafka_topic):
    kafka_broker.set_clock_wrong(-2 * HOUR_SECONDS)
    with pytest.raises(InvalidTimestampError):
        send(kafka_broker.bootstrap_servers, kafka_topic, b"now")

    kafka_broker.set_clock_wrong(0)
    assert send(kafka_broker.bootstrap_servers, kafka_topic, b"now") == 0


def test_a_week_of_retention_is_over_when_the_brokers_clock_is_ahead(kafka_broker, kafka_topic):
    send(kafka_broker.bootstrap_servers, kafka_topic, b"a week is long")
    kafka_broker.advance_time(days=8)
    assert kafka_broker.read(kafka_topic) == []
    assert kafka_broker.topic(kafka_topic).partitions[0].log_start_offset == 1
