"""Normal life of three brokers writes next to nothing into their logs: topics are made and deleted,
records written and read in transactions and groups, every broker stopped and started again."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

TOPICS = [f"topic-{number}" for number in range(3)]
PARTITIONS = 6
RECORDS = 120
LINES_MAX = 3
"""In all, at the level that brokers have by default. Before, it was 1,308."""

SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}


def write(producer: Producer) -> None:
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce(TOPICS[number % len(TOPICS)], b"x" * 100)
    producer.commit_transaction(120)


def test_three_brokers_normal_life_is_quiet(tmp_path: Path) -> None:
    brokers = [
        BrokerProcess(
            tmp_path / str(number),
            settings=SETTINGS,
            arguments=["--broker-id", str(number), "--cluster-dir", str(tmp_path / "shared")],
        )
        for number in (1, 2, 3)
    ]
    try:
        live(brokers)
    finally:
        for broker in brokers:
            broker.stop()
    lines = [line for broker in brokers for line in broker.log.splitlines()]
    assert len(lines) <= LINES_MAX, "\n".join(lines)


def live(brokers: list[BrokerProcess]) -> None:
    servers = {"bootstrap.servers": ",".join(each.bootstrap for each in brokers)}
    quiet = {**servers, "log_level": 0}
    admin = AdminClient(quiet)
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in TOPICS]).values():
        made.result(120)
    producer = Producer({**quiet, "transactional.id": "life"})
    producer.init_transactions(120)
    consumer = Consumer({**quiet, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(TOPICS)
    read = 0

    def reads(count: int) -> bool:
        nonlocal read
        read += sum(message.error() is None for message in consumer.consume(count - read, 0.5))
        return read == count

    def is_whole() -> bool:
        topics = admin.list_topics(timeout=30).topics.values()
        return all(len(each.isrs) == 3 for topic in topics for each in topic.partitions.values())

    write(producer)
    wait_until(lambda: reads(RECORDS), 120)
    for number, broker in enumerate(brokers, 2):
        broker.stop()
        broker.start()
        wait_until(is_whole, 120)
        write(producer)
        wait_until(lambda number=number: reads(number * RECORDS), 120)  # type: ignore[misc]  # bound
    consumer.close()
    for deleted in admin.delete_topics(TOPICS).values():
        deleted.result(120)
