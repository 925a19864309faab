"""Read a topic as a group of two members in one process, and watch its partitions move.

Start a broker (`odradek serve`), then: python examples/client_consumer.py [HOST:PORT]
"""

import sys
from collections.abc import Set

import trio

from odradek.client import (
    Admin,
    Consumer,
    ConsumerSettings,
    KafkaClient,
    Producer,
    RebalanceListener,
)
from odradek.client.admin.admin import NewTopic

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC, GROUP = "shared-work", "workers"
PARTITIONS, RECORDS = 4, 40
SETTINGS = ConsumerSettings(auto_offset_reset="earliest")


class Shown(RebalanceListener):
    """Prints what a member gets and gives up."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def on_assigned(self, partitions: Set[tuple[str, int]]) -> None:
        print(f"{self.name} gets {sorted(number for _, number in partitions)}")

    async def on_revoked(self, partitions: Set[tuple[str, int]]) -> None:
        print(f"{self.name} gives up {sorted(number for _, number in partitions)}")


def member(client: KafkaClient, name: str) -> Consumer:
    return Consumer(client, group_id=GROUP, topics=[TOPIC], listener=Shown(name), settings=SETTINGS)


async def poll_until(consumers: list[Consumer], owned: int) -> None:
    """Poll until each of the members owns so many partitions."""
    while any(len(consumer.assignment) != owned for consumer in consumers):
        for consumer in consumers:
            await consumer.poll(timeout_ms=100)


async def main() -> None:
    async with KafkaClient(BROKER) as client:
        await Admin(client).create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
        async with member(client, "first") as first:
            await poll_until([first], PARTITIONS)
            async with member(client, "second") as second:
                await poll_until([first, second], PARTITIONS // 2)
            await poll_until([first], PARTITIONS)

            async with Producer(client) as producer:
                for number in range(RECORDS):
                    await producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
            total = count = 0
            async for record in first:
                total += int(record.value or 0)
                count += 1
                if count == RECORDS:
                    break
            print(f"{count} records, their sum is {total}")


trio.run(main)
