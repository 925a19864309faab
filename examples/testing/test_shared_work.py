"""Work shared by ten consumers on one partition.

In a consumer group one member reads a partition, and the others wait. In a share group (KIP-932)
each record goes to one of the members, so that as many work at once as there are. It is accepted by
the one that has it; what a member holds when it goes is handed to another.

    pip install pytest "confluent-kafka>=2.16"    # and odradek, as README.md says
    pytest test_shared_work.py
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer, ShareConsumer

from odradek.testing.conditions import group_stable, records_in_flight, share_group_settled

WORKERS = 10
QUICK = {
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.record.lock.duration.ms": "60000",
}
pytestmark = pytest.mark.kafka(config=QUICK)


class Worker:
    """The code under test: takes one record at a time, and accepts it when its work is done."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        self.done: list[bytes] = []
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "max.poll.records": 1,
                "share.acknowledgement.mode": "explicit",
            }
        )
        self._consumer.subscribe([topic])

    def work(self, stop: threading.Event, do) -> None:
        while not stop.is_set():
            for message in self._consumer.poll(timeout=0.2):
                do(message.value())
                self._consumer.acknowledge(message)
                self._consumer.commit_sync()
                self.done.append(message.value())
        self._consumer.close()


@pytest.fixture
def workers(kafka, kafka_topic, kafka_group):
    return [Worker(kafka.bootstrap_servers, kafka_topic, kafka_group) for _ in range(WORKERS)]


def test_ten_workers_share_one_partition(kafka, kafka_topic, kafka_group, workers):
    values = [b"%d" % number for number in range(50)]
    stop, all_at_work = threading.Event(), threading.Barrier(WORKERS + 1)
    first = set(values[:WORKERS])

    def do(value: bytes) -> None:
        if value in first:
            all_at_work.wait(60)

    with ThreadPoolExecutor(WORKERS) as threads:
        running = [threads.submit(each.work, stop, do) for each in workers]
        try:
            kafka.wait_until(group_stable(kafka_group, members=WORKERS), timeout=60)
            kafka.wait_until(
                lambda broker: any(each.is_loaded for each in broker.share_partitions(kafka_group)),
                timeout=60,
            )
            # Members are given whole batches, so that ten of them need ten batches.
            one_by_one = {"batch.num.messages": 1}
            producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **one_by_one})
            for value in values:
                producer.produce(kafka_topic, value, partition=0)
            assert producer.flush(20) == 0
            # Each of the ten has a record of the one partition, and nobody has given one back yet.
            kafka.wait_until(records_in_flight(kafka_group, WORKERS, state="Acquired"), timeout=60)
            owners = {
                each.member_id
                for partition in kafka.share_partitions(kafka_group)
                for each in partition.records
                if each.state == "Acquired"
            }
            assert len(owners) == WORKERS
            all_at_work.wait(60)
            kafka.wait_until(share_group_settled(kafka_group), timeout=60)
        finally:
            stop.set()
            all_at_work.abort()
        for each in running:
            each.result(60)

    assert all(each.done for each in workers)
    assert sorted(value for each in workers for value in each.done) == sorted(values)
