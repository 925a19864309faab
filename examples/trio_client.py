"""Send ten records to a topic and read them back, with odradek's own client for trio.

Start a broker (`odradek serve`), then: python examples/trio_client.py [HOST:PORT]
"""

import sys

import trio

from odradek.client import Fetcher, KafkaClient, Producer

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "hello-trio"


async def main() -> None:
    async with KafkaClient(BROKER) as client:
        async with Producer(client) as producer:
            sent = [
                await producer.send(TOPIC, b"hello number %d" % n, key=b"%d" % n, partition=0)
                for n in range(10)
            ]
            first = await sent[0]

        fetcher = Fetcher(client)
        fetcher.assign({(TOPIC, 0): first.offset})
        count = 0
        while count < 10:
            for record in await fetcher.poll():
                text = (record.value or b"").decode()
                print(f"{record.partition}:{record.offset} {text}")
                count += 1


trio.run(main)
