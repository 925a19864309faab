"""Send ten records to a topic and read them back, with odradek's own client for trio.

Start a broker (`odradek serve`), then: python examples/trio_client.py [HOST:PORT]
"""

import sys
import time

import trio

from odradek.client import Fetcher, KafkaClient, Producer

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "hello-trio"


async def main() -> None:
    async with KafkaClient(BROKER) as client:
        producer = Producer(client, idempotent=True)
        now_ms = time.time_ns() // 1_000_000
        records = [(b"%d" % n, b"hello number %d" % n, now_ms, ()) for n in range(10)]
        result = await producer.send(TOPIC, 0, records)

        fetcher = Fetcher(client)
        fetcher.assign({(TOPIC, 0): result.base_offset})
        count = 0
        while count < 10:
            for record in await fetcher.poll():
                text = (record.value or b"").decode()
                print(f"{record.partition}:{record.offset} {text}")
                count += 1


trio.run(main)
