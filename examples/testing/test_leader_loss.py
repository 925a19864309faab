"""The loss of a leader: its process is killed, and a replica takes over.

Three brokers, each a process. What was confirmed must be there afterwards, and the producer must
go on with the new leader by itself.

    pip install pytest confluent-kafka    # and odradek, as README.md says
    pytest test_leader_loss.py
"""

import pytest
from confluent_kafka import Producer


def produce(producer: Producer, topic: str, value: bytes) -> None:
    """The code under test: returns when the record is confirmed by all replicas in sync."""
    written = []
    producer.produce(topic, value, on_delivery=lambda error, _: written.append(error is None))
    assert producer.flush(60) == 0, "the record was not confirmed in time"
    assert written == [True]


@pytest.mark.kafka(brokers=3)
def test_nothing_confirmed_is_lost_with_the_leader(kafka_cluster, kafka_topic):
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap_servers, "acks": "all"})
    produce(producer, kafka_topic, b"before")

    leader = kafka_cluster.leader_of(kafka_topic, 0)
    leader.kill()
    produce(producer, kafka_topic, b"after")

    assert kafka_cluster.leader_of(kafka_topic, 0) is not leader
    values = [record.value for record in kafka_cluster.read(kafka_topic)]
    assert values == [b"before", b"after"]
