"""A full disk: the broker cannot write, and says so; later there is room again.

Does your producer report what was not written, and can it be used again afterwards?

    pip install pytest confluent-kafka    # and odradek, as README.md says
    pytest test_full_disk.py
"""

from confluent_kafka import Producer


def try_to_send(producer: Producer, topic: str, value: bytes) -> bool:
    """The code under test: whether the record was written."""
    written = []
    producer.produce(topic, value, on_delivery=lambda error, _: written.append(error is None))
    producer.flush(30)
    return all(written)


def test_what_a_full_disk_refused_can_be_sent_again(kafka_broker, kafka_topic):
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "retries": 0})
    assert try_to_send(producer, kafka_topic, b"first")
    with kafka_broker.full_disk():
        assert not try_to_send(producer, kafka_topic, b"second")
    assert try_to_send(producer, kafka_topic, b"second")

    values = [record.value for record in kafka_broker.read(kafka_topic)]
    assert values == [b"first", b"second"]
