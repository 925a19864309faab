"""A fenced producer: another instance has taken over its transactional id.

That is what happens to one that was thought dead and comes back. Its transaction must not be
committed, and it has to stop, not to try again.

    pip install pytest confluent-kafka    # and odradek, as README.md says
    pytest test_fenced_producer.py
"""

import pytest
from confluent_kafka import KafkaException, Producer


class Fenced(Exception):
    """Another instance does this work now; this one must end."""


def transfer(producer: Producer, topic: str, amounts: list[bytes]) -> None:
    """The code under test: all amounts or none."""
    producer.begin_transaction()
    for amount in amounts:
        producer.produce(topic, amount)
    try:
        producer.commit_transaction(30)
    except KafkaException as error:
        if error.args[0].fatal():
            raise Fenced from error
        producer.abort_transaction(30)
        raise


def test_a_producer_that_was_fenced_ends_and_commits_nothing(kafka, kafka_topic):
    transactional_id = f"transfers-{kafka_topic}"
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": transactional_id}
    )
    producer.init_transactions(30)
    transfer(producer, kafka_topic, [b"-10", b"+10"])

    kafka.fence_producer(transactional_id)
    with pytest.raises(Fenced):
        transfer(producer, kafka_topic, [b"-20", b"+20"])

    committed = kafka.read(kafka_topic, committed_only=True)
    assert [record.value for record in committed] == [b"-10", b"+10"]
