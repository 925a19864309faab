"""Retry after a lost answer: the broker has written the record, and the producer cannot know.

The answer to a Produce is lost: the broker handles it, and closes the connection instead of
answering. Does your producer try again, so that the order is not given up as failed?

    pip install pytest kafka-python    # and odradek, as README.md says
    pytest test_lost_answer.py
"""

from kafka import KafkaProducer

from odradek.testing import faults


def place_order(producer: KafkaProducer, topic: str, order: bytes) -> int:
    """The code under test: returns where the order was written."""
    return producer.send(topic, order).get(timeout=20).offset


def test_an_order_is_placed_although_the_answer_was_lost(kafka, kafka_topic):
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all", retries=5)
    with kafka.faults.during(faults.lose_answer("Produce", topic=kafka_topic).once()):
        offset = place_order(producer, kafka_topic, b"one book")
    producer.close()

    assert offset == 0
    assert kafka.requests.of("Produce", topic=kafka_topic).count() == 2
