"""librdkafka's queued records survive restarts of the only broker: its first answers are whole.

A client that is told of no topics takes them for deleted, and fails what it has queued for good.
"""

import threading
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.testing.process.broker_process import BrokerProcess

pytestmark = pytest.mark.clients

TOPICS = [f"orders-{number}" for number in range(10)]
PRODUCERS = 4
SECONDS_MAX = 100.0
EAGER = {
    "log_level": 2,
    "reconnect.backoff.ms": 1,
    "reconnect.backoff.max.ms": 5,
    "topic.metadata.refresh.interval.ms": 10,
    "topic.metadata.propagation.max.ms": 0,
}
"""Clients that come back as soon as the port is open, and believe what they are told at once, as
every producer does that has known a topic for 30 s."""


def test_queued_records_outlive_restarts_of_the_only_broker(tmp_path: Path) -> None:
    failed: list[KafkaError] = []
    delivered: Counter[str] = Counter()
    produced: Counter[str] = Counter()

    def note(error: KafkaError | None, message: Message) -> None:
        if error is None:
            delivered[message.topic()] += 1
        else:
            failed.append(error)

    with BrokerProcess(
        tmp_path / "data", settings={"auto.create.topics.enable": "false"}
    ) as broker:
        address = {"bootstrap.servers": broker.bootstrap, **EAGER}
        admin = AdminClient(address)
        made = admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS])
        for future in made.values():
            future.result(SECONDS_MAX)
        ends = (broker.kill, broker.stop, broker.kill)
        producers = [Producer({**address, "on_delivery": note}) for _ in range(PRODUCERS)]
        for end in ends:
            for producer in producers:
                for name in TOPICS:
                    producer.produce(name, b"before")
                    produced[name] += 1
                assert producer.flush(SECONDS_MAX) == 0
            end()
            starting = threading.Thread(target=broker.start)
            starting.start()
            while starting.is_alive():
                for producer in producers:
                    for name in TOPICS:
                        producer.produce(name, b"queued")
                        produced[name] += 1
                    producer.poll(0.001)
            starting.join()
            for producer in producers:
                assert producer.flush(SECONDS_MAX) == 0
            assert failed == []
        assert delivered == produced
        consumer = Consumer({**address, "group.id": "unused"})
        for name in TOPICS:
            assert (
                consumer.get_watermark_offsets(TopicPartition(name, 0), SECONDS_MAX)[1]
                >= produced[name]
            )
        consumer.close()
