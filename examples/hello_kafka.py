"""Send ten records to a topic and read them back, with kafka-python.

    pip install kafka-python    # and odradek, as README.md says

Start a broker (`odradek serve`), then: python examples/hello_kafka.py [HOST:PORT]
"""

import sys

from kafka import KafkaConsumer, KafkaProducer

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "hello"

with KafkaProducer(bootstrap_servers=BROKER) as producer:
    for number in range(10):
        producer.send(TOPIC, key=b"%d" % number, value=f"hello number {number}".encode())

with KafkaConsumer(
    TOPIC, bootstrap_servers=BROKER, auto_offset_reset="earliest", consumer_timeout_ms=60_000
) as consumer:
    for count, record in enumerate(consumer, start=1):
        print(f"{record.partition}:{record.offset} {record.value.decode()}")
        if count == 10:
            break
