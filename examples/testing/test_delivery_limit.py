"""A poison record in a share group: it is handed out up to its delivery limit, then to nobody.

The members of a share group (KIP-932) work on single records. One that a member releases, or loses
since it holds it for too long, comes again, to it or to another. `share.delivery.count.limit`, 5
unless the group says otherwise, bounds that: a record that nobody can process holds up nobody.

    pip install pytest "confluent-kafka>=2.16"    # and odradek, as README.md says
    pytest test_delivery_limit.py
"""

from collections import Counter

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from odradek.testing.conditions import delivery_count_reached, share_group_settled

LIMIT = 5
ENOUGH_POLLS = 120
QUICK = {
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
}
pytestmark = pytest.mark.kafka(config=QUICK)


class Worker:
    """The code under test: accepts numbers, and releases what it cannot read, to try again."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        self.attempts: Counter[bytes] = Counter()
        self.results: list[int] = []
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> list:
        return list(self._consumer.poll(timeout=0.5))

    def work(self, messages: list) -> None:
        for message in messages:
            self.attempts[message.value()] += 1
            answer = AcknowledgeType.ACCEPT
            try:
                self.results.append(int(message.value()))
            except ValueError:
                answer = AcknowledgeType.RELEASE
            self._consumer.acknowledge(message, answer)
        self._consumer.commit_sync()

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def worker(kafka, kafka_topic, kafka_group):
    worker = Worker(kafka.bootstrap_servers, kafka_topic, kafka_group)
    for _ in range(ENOUGH_POLLS):  # a new group begins at the end: wait until it has begun
        assert worker.poll() == []
        if any(each.is_loaded for each in kafka.share_partitions(kafka_group)):
            break
    yield worker
    worker.close()


def produce(kafka, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def test_a_record_that_nobody_can_read_is_tried_five_times_and_holds_up_nobody(
    kafka, kafka_topic, kafka_group, worker
):
    produce(kafka, kafka_topic, b"1", b"poison", b"3")
    for _ in range(ENOUGH_POLLS):
        if worker.attempts[b"poison"] == LIMIT:
            break
        worker.work(worker.poll())
    kafka.wait_until(share_group_settled(kafka_group))

    assert worker.results == [1, 3]
    assert worker.attempts == {b"1": 1, b"poison": LIMIT, b"3": 1}
    produce(kafka, kafka_topic, b"4")
    for _ in range(ENOUGH_POLLS):
        if 4 in worker.results:
            break
        worker.work(worker.poll())
    assert worker.attempts == {b"1": 1, b"poison": LIMIT, b"3": 1, b"4": 1}


def test_a_record_that_hangs_its_workers_goes_no_further_either(
    kafka, kafka_topic, kafka_group, worker
):
    produce(kafka, kafka_topic, b"7")
    for attempt in range(1, LIMIT + 1):
        messages = []
        while not messages:
            messages = worker.poll()
        kafka.wait_until(delivery_count_reached(kafka_group, kafka_topic, 0, attempt))
        # Half a minute has passed, and the worker still has it (share.record.lock.duration.ms).
        assert kafka.expire_lock(kafka_group, kafka_topic, offset=0) == 1
        worker.work(messages)  # too late: its acknowledgement is refused
    kafka.wait_until(share_group_settled(kafka_group))

    assert worker.attempts == {b"7": LIMIT}
    assert worker.poll() == []
