"""Read numbers, write their squares, and commit both in transactions: exactly once.

The positions that were read are committed with what was written, so another run goes on where
this one stopped, even if this one was killed.

Start a broker (`odradek serve`), then: python examples/client_transactions.py [HOST:PORT]
"""

import sys
from typing import NamedTuple

import trio

from odradek.client import Fetcher, KafkaClient, Producer, ProducerSettings

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
NUMBERS, SQUARES = "numbers", "squares"


class Group(NamedTuple):
    """Under whose name positions are committed."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


async def main() -> None:
    async with KafkaClient(BROKER) as client:
        async with Producer(client) as producer:
            for number in range(10):
                await producer.send(NUMBERS, b"%d" % number, partition=0)

        numbers = Fetcher(client)
        numbers.assign({(NUMBERS, 0): 0})
        settings = ProducerSettings(transactional_id="squarer")
        async with Producer(client, settings) as producer:
            # Fences a squarer that was started before, and finishes what it left open.
            await producer.init_transactions()
            done = 0
            while done < 10:
                records = await numbers.poll()
                if not records:
                    continue
                async with producer.transaction():
                    for record in records:
                        square = int(record.value or b"0") ** 2
                        await producer.send(SQUARES, b"%d" % square, key=record.value)
                    positions = {(NUMBERS, 0): records[-1].offset + 1}
                    await producer.send_offsets_to_transaction(positions, Group("squarers"))
                done += len(records)
            try:
                async with producer.transaction():
                    await producer.send(SQUARES, b"never seen")
                    raise ValueError("this record is wrong")
            except ValueError as error:
                print(f"aborted: {error}")
        print(f"{done} squares and the position {positions[NUMBERS, 0]} are committed")


trio.run(main)
