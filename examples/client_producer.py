"""Send a thousand records with odradek's producer for trio, which is idempotent by default.

Start a broker (`odradek serve`), then: python examples/client_producer.py [HOST:PORT]
"""

import sys

import trio

from odradek.client import KafkaClient, Producer, ProducerSettings
from odradek.protocol.compression.codecs import Compression

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "temperatures"


async def main() -> None:
    settings = ProducerSettings(compression_type=Compression.ZSTD, linger_ms=20)
    async with KafkaClient(BROKER) as client, Producer(client, settings) as producer:
        # Returns once the record is in a batch; what is returned can be awaited for its place.
        first = await producer.send(TOPIC, b"19.5", key=b"kitchen", headers=[("unit", b"C")])
        place = await first
        print(f"the first record is in partition {place.partition} at offset {place.offset}")

        # For many records: no account of each, and what fails is raised by flush.
        for number in range(999):
            try:
                producer.send_nowait(TOPIC, b"%d" % number, key=b"room %d" % (number % 10))
            except trio.WouldBlock:  # the buffer is full
                await producer.send(TOPIC, b"%d" % number, key=b"room %d" % (number % 10))
        await producer.flush()
        print("1,000 records are in the log, each once and in order")


trio.run(main)
