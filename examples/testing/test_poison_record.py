"""A poison record: one that your consumer cannot read must not stop it for ever.

Two kinds: a value that is not what it should be, which stays in the topic; and bytes that were
damaged on their way, which are there unharmed when they are fetched again.

    pip install pytest confluent-kafka    # and odradek, as README.md says
    pytest test_poison_record.py
"""

import json

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from odradek.testing import faults

ENOUGH_POLLS = 60


class OrderReader:
    """The code under test: reads orders, and puts aside what is none."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        self.rejected: list[bytes] = []
        self.damaged = 0
        settings = {"bootstrap.servers": address, "group.id": group, "check.crcs": True}
        self._consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
        self._consumer.subscribe([topic])

    def read(self, count: int) -> list[dict]:
        orders: list[dict] = []
        for _ in range(ENOUGH_POLLS):
            if len(orders) == count:
                break
            message = self._consumer.poll(1)
            if message is None:
                continue
            if message.error() is not None:
                assert message.error().code() == KafkaError._BAD_MSG, message.error()
                self.damaged += 1  # the client fetches it again
                continue
            try:
                orders.append(json.loads(message.value()))
            except ValueError:
                self.rejected.append(message.value())
        return orders

    def close(self) -> None:
        self._consumer.close()


def produce(kafka, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


@pytest.fixture
def reader(kafka, kafka_topic, kafka_group):
    reader = OrderReader(kafka.bootstrap_servers, kafka_topic, kafka_group)
    yield reader
    reader.close()


def test_a_value_that_is_no_order_is_put_aside(kafka, kafka_topic, reader):
    produce(kafka, kafka_topic, b'{"book": 1}', b"\xff poison", b'{"book": 2}')
    assert reader.read(2) == [{"book": 1}, {"book": 2}]
    assert reader.rejected == [b"\xff poison"]


def test_bytes_damaged_on_their_way_are_fetched_again(kafka, kafka_topic, reader):
    with kafka.faults.during(faults.corrupt_records("Fetch", topic=kafka_topic).once()):
        produce(kafka, kafka_topic, b'{"book": 1}')
        assert reader.read(1) == [{"book": 1}]
    assert (reader.damaged, reader.rejected) == (1, [])
