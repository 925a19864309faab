"""A rebalance during a commit: the work is done, and its offset is not accepted any more.

While your consumer works on records, the group moves on without it, so the commit fails. The
records come again, to this consumer or another: is the work done twice without harm?

    pip install pytest kafka-python    # and odradek, as README.md says
    pytest test_rebalance_during_commit.py
"""

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import CommitFailedError

from odradek.testing import faults
from odradek.testing.conditions import no_lag


class Shipping:
    """The code under test: ships each order, and each only once."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        self.shipped: dict[bytes, bytes] = {}
        self.seen = 0
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    def receive(self) -> None:
        for records in self._consumer.poll(timeout_ms=60_000).values():
            for record in records:
                self.seen += 1
                self.shipped[record.key] = record.value

    def commit(self) -> None:
        try:
            self._consumer.commit()
        except CommitFailedError:
            self._go_back()  # whoever has the partitions now gets the same records again

    def _go_back(self) -> None:
        for partition in self._consumer.assignment():
            committed = self._consumer.committed(partition)
            if committed is None:
                self._consumer.seek_to_beginning(partition)
            else:
                self._consumer.seek(partition, committed)

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def shipping(kafka, kafka_topic, kafka_group):
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        producer.send(kafka_topic, key=b"order 1", value=b"one book").get(timeout=20)
    shipping = Shipping(kafka.bootstrap_servers, kafka_topic, kafka_group)
    yield shipping
    shipping.close()


def test_an_order_comes_again_when_a_rebalance_refuses_its_commit(kafka, kafka_group, shipping):
    shipping.receive()
    refused = faults.answer("OffsetCommit", "REBALANCE_IN_PROGRESS", group=kafka_group)
    with kafka.faults.during(refused.once()):
        shipping.commit()
    assert kafka.group(kafka_group).offsets == {}

    shipping.receive()
    shipping.commit()
    kafka.wait_until(no_lag(kafka_group))
    assert shipping.seen == 2
    assert shipping.shipped == {b"order 1": b"one book"}


def test_an_order_comes_again_when_the_group_has_thrown_the_consumer_out(
    kafka, kafka_group, shipping
):
    shipping.receive()
    kafka.expire_session(kafka_group)  # as if the work on the order had taken too long
    shipping.commit()
    assert kafka.group(kafka_group).offsets == {}

    shipping.receive()
    shipping.commit()
    kafka.wait_until(no_lag(kafka_group))
    assert shipping.seen == 2
    assert shipping.shipped == {b"order 1": b"one book"}
