"""Read numbers, write their squares, and commit both in transactions: exactly once.

The positions that were read are committed with what was written, so another run goes on where
this one stopped, even if this one was killed.

Start a broker (`odradek serve`), then: python examples/client_transactions.py [HOST:PORT]
"""

import sys

import trio

from odradek.client import Consumer, ConsumerSettings, KafkaClient, Producer, ProducerSettings

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
NUMBERS, SQUARES = "numbers", "squares"


async def write_numbers(client: KafkaClient) -> None:
    async with Producer(client) as producer:
        for number in range(10):
            await producer.send(NUMBERS, b"%d" % number)


async def square_numbers(client: KafkaClient, consumer: Consumer, producer: Producer) -> None:
    # Fences a squarer that was started before, and finishes what it left open.
    await producer.init_transactions()
    done = 0
    while done < 10:
        records = await consumer.poll()
        async with producer.transaction():
            for record in records:
                square = int(record.value or b"0") ** 2
                await producer.send(SQUARES, b"%d" % square, key=record.value)
            positions = {(each.topic, each.partition): each.offset + 1 for each in records}
            await producer.send_offsets_to_transaction(positions, consumer.group_metadata())
        done += len(records)
    print(f"{done} squares are committed, and the positions of what was read")

    try:
        async with producer.transaction():
            await producer.send(SQUARES, b"never seen")
            raise ValueError("this record is wrong")
    except ValueError as error:
        print(f"aborted: {error}")


async def main() -> None:
    from_committed = ConsumerSettings(auto_offset_reset="earliest", enable_auto_commit=False)
    async with KafkaClient(BROKER) as client:
        await write_numbers(client)
        async with (
            Consumer(
                client, group_id="squarers", topics=[NUMBERS], settings=from_committed
            ) as consumer,
            Producer(client, ProducerSettings(transactional_id="squarer")) as producer,
        ):
            await square_numbers(client, consumer, producer)


trio.run(main)
