"""Duplicates, with and without idempotence: what a retry after a lost answer does to the topic.

A producer that tries again writes the record twice, unless it numbers its records
(`enable_idempotence`): then the broker knows the second attempt for what it is.

    pip install pytest kafka-python    # and odradek, as README.md says
    pytest test_duplicates.py
"""

import pytest
from kafka import KafkaProducer

from odradek.testing import faults


@pytest.mark.parametrize(("idempotence", "written"), [(False, 2), (True, 1)])
def test_only_idempotence_keeps_a_retry_from_being_a_duplicate(
    kafka, kafka_topic, idempotence, written
):
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        acks="all",
        retries=5,
        max_in_flight_requests_per_connection=1,
        enable_idempotence=idempotence,
    )
    with kafka.faults.during(faults.lose_answer("Produce", topic=kafka_topic).once()):
        producer.send(kafka_topic, b"one book").get(timeout=20)
    producer.close()

    records = kafka.read(kafka_topic)
    assert [record.value for record in records] == [b"one book"] * written
