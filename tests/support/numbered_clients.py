"""Three client libraries that send numbered records and read them back, all with one face."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

RECORD_BYTES = 100
DELIVERY_SECONDS_MAX = 300
READ_SECONDS_MAX = 240.0
LIBRDKAFKA_LOG_LEVEL = 2
"""Critical: that connections are refused while the broker is gone is no news here."""

OnAcknowledged = Callable[[int], None]
NumbersByPartition = dict[int, list[int]]


class NumberedClient(Protocol):
    """Sends the numbers below `count` over the partitions in turn, and reads numbers back."""

    def send(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        count: int,
        on_acknowledged: OnAcknowledged,
    ) -> None:
        """Send as fast as the broker takes them, and wait until all futures are resolved."""

    def read(self, bootstrap: str, topic: str, end_offsets: dict[int, int]) -> NumbersByPartition:
        """Read each partition from its start to its end."""


def value_of(number: int) -> bytes:
    return (b"%d " % number).ljust(RECORD_BYTES, b".")


def number_of(value: bytes | None) -> int:
    assert value is not None
    return int(value.split(b" ")[0])


class KafkaPython:
    def send(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        count: int,
        on_acknowledged: OnAcknowledged,
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            linger_ms=5,
            delivery_timeout_ms=DELIVERY_SECONDS_MAX * 1000,
            reconnect_backoff_max_ms=500,
        )
        futures = []
        for number in range(count):
            future = producer.send(topic, value_of(number), partition=number % partitions)
            future.add_callback(lambda _, number=number: on_acknowledged(number))
            futures.append(future)
        for future in futures:
            future.get(timeout=DELIVERY_SECONDS_MAX)
        producer.close()

    def read(self, bootstrap: str, topic: str, end_offsets: dict[int, int]) -> NumbersByPartition:
        numbers: NumbersByPartition = defaultdict(list)
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_poll_records=5000
        )
        consumer.assign([TopicPartition(topic, partition) for partition in end_offsets])
        deadline = time.monotonic() + READ_SECONDS_MAX
        while any(
            consumer.position(TopicPartition(topic, partition)) < end
            for partition, end in end_offsets.items()
        ):
            assert time.monotonic() < deadline, "reading took too long"
            for partition, records in consumer.poll(timeout_ms=1000).items():
                numbers[partition.partition] += [number_of(record.value) for record in records]
        consumer.close()
        return numbers


class ConfluentKafka:
    def send(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        count: int,
        on_acknowledged: OnAcknowledged,
    ) -> None:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": LIBRDKAFKA_LOG_LEVEL,
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": DELIVERY_SECONDS_MAX * 1000,
                "reconnect.backoff.max.ms": 500,
                "queue.buffering.max.messages": 20_000,
            }
        )

        def on_delivery(error: object, message: Message) -> None:
            if error is not None:
                raise KafkaException(error)
            on_acknowledged(number_of(message.value()))

        for number in range(count):
            while True:
                try:
                    producer.produce(
                        topic,
                        value_of(number),
                        partition=number % partitions,
                        on_delivery=on_delivery,
                    )
                    break
                except BufferError:  # 20,000 records are on their way: let some arrive
                    producer.poll(1.0)
            producer.poll(0)
        assert producer.flush(DELIVERY_SECONDS_MAX) == 0

    def read(self, bootstrap: str, topic: str, end_offsets: dict[int, int]) -> NumbersByPartition:
        numbers: NumbersByPartition = defaultdict(list)
        settings = {"group.id": "unused", "log_level": LIBRDKAFKA_LOG_LEVEL}
        consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
        consumer.assign(
            [ConfluentTopicPartition(topic, part, OFFSET_BEGINNING) for part in end_offsets]
        )
        unfinished = {partition for partition, end in end_offsets.items() if end > 0}
        deadline = time.monotonic() + READ_SECONDS_MAX
        while unfinished:
            assert time.monotonic() < deadline, "reading took too long"
            for message in consumer.consume(5000, timeout=0.5):
                if message.error():
                    raise KafkaException(message.error())
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                numbers[partition].append(number_of(message.value()))
                if offset + 1 >= end_offsets[partition]:
                    unfinished.discard(partition)
        consumer.close()
        return numbers


class Aiokafka:
    def send(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        count: int,
        on_acknowledged: OnAcknowledged,
    ) -> None:
        async def send_all() -> None:
            settings = {
                "enable_idempotence": True,
                "linger_ms": 5,
                # How long a batch may be under way; aiokafka retries until then.
                "request_timeout_ms": DELIVERY_SECONDS_MAX * 1000,
            }
            async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
                futures = []
                for number in range(count):
                    future = await producer.send(
                        topic, value_of(number), partition=number % partitions
                    )
                    future.add_done_callback(
                        lambda done, number=number: (
                            None if done.exception() else on_acknowledged(number)
                        )
                    )
                    futures.append(future)
                async with asyncio.timeout(DELIVERY_SECONDS_MAX):
                    await asyncio.gather(*futures)

        asyncio.run(send_all())

    def read(self, bootstrap: str, topic: str, end_offsets: dict[int, int]) -> NumbersByPartition:
        async def read_all() -> NumbersByPartition:
            numbers: NumbersByPartition = defaultdict(list)
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
            await consumer.start()
            try:
                partitions = [AioTopicPartition(topic, partition) for partition in end_offsets]
                consumer.assign(partitions)
                async with asyncio.timeout(READ_SECONDS_MAX):
                    for partition in partitions:
                        while await consumer.position(partition) < end_offsets[partition.partition]:
                            batches = await consumer.getmany(timeout_ms=1000, max_records=5000)
                            for read_from, records in batches.items():
                                numbers[read_from.partition] += [
                                    number_of(record.value) for record in records
                                ]
            finally:
                await consumer.stop()
            return numbers

        return asyncio.run(read_all())


NUMBERED_CLIENTS: dict[str, NumberedClient] = {
    "kafka-python": KafkaPython(),
    "confluent-kafka": ConfluentKafka(),
    "aiokafka": Aiokafka(),
}
