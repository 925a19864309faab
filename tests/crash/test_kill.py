"""The broker is killed while clients send, and comes back on the same port.

What a client was told is written must be there: once, in order. The page cache outlives the
process, so this needs no flush to the disk; a power cut would.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from odradek.testing.process.broker_process import BrokerProcess

RECORDS = 100_000
SOAK_RECORDS = 2_000_000
SOAK_KILLS = 8
PARTITIONS = 3
START_SECONDS_MAX = 240
RECORD_BYTES = 100
DELIVERY_SECONDS_MAX = 300
READ_SECONDS_MAX = 240.0
LIBRDKAFKA_LOG_LEVEL = 2
"""Critical: that connections are refused while the broker is gone is no news here."""

OnAcknowledged = Callable[[int], None]

NumbersByPartition = dict[int, list[int]]


class Delivery(NamedTuple):
    """How many records were acknowledged and read, and what is wrong with them."""

    acknowledged: int
    read: int
    doubled: int
    lost: int
    misordered: int
    """Records that follow one with a higher number in their partition."""

    @property
    def is_exactly_once(self) -> bool:
        """Whether everything acknowledged is there, once, in order."""
        return not (self.doubled or self.lost or self.misordered)

    def __str__(self) -> str:
        return ", ".join(f"{field} {value:,}" for field, value in self._asdict().items())


def check_delivery(acknowledged: Collection[int], read: Mapping[int, Sequence[int]]) -> Delivery:
    """Compare what was acknowledged with what was read.

    Args:
        acknowledged: the numbers of the records whose future was resolved. Records were sent
            in the order of their numbers.
        read: the numbers read, by partition, in the order of their offsets.
    """
    counts = Counter(number for numbers in read.values() for number in numbers)
    return Delivery(
        acknowledged=len(acknowledged),
        read=counts.total(),
        doubled=sum(count - 1 for count in counts.values()),
        lost=len(set(acknowledged) - counts.keys()),
        misordered=sum(
            later < earlier for numbers in read.values() for earlier, later in pairwise(numbers)
        ),
    )


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


class Killer:
    """Kills the broker when so many records are acknowledged, and starts it again.

    Args:
        broker: the victim.
        thresholds: how many acknowledgements let it be killed, ascending.
    """

    def __init__(self, broker: BrokerProcess, thresholds: list[int]) -> None:
        self.acknowledged: set[int] = set()
        self.kills = 0
        self._broker = broker
        self._thresholds = thresholds
        self._due = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._kill_when_due, daemon=True)
        self._thread.start()

    def on_acknowledged(self, number: int) -> None:
        """Count an acknowledgement."""
        self.acknowledged.add(number)
        if len(self.acknowledged) in self._thresholds:
            self._due.release()

    def wait_until_done(self) -> None:
        """Wait until the last kill is over and the broker is back."""
        self._thread.join(START_SECONDS_MAX)
        assert self.kills == len(self._thresholds)

    def _kill_when_due(self) -> None:
        for _ in self._thresholds:
            self._due.acquire()
            self._broker.kill()
            self._broker.start()
            self.kills += 1


def send_through_kills(
    broker: BrokerProcess, client_name: str, topic: str, records: int, kills: int
) -> Delivery:
    """Send numbered records while the broker is killed, read them back, and compare."""
    client = NUMBERED_CLIENTS[client_name]
    create_topic(broker, topic)
    killer = Killer(broker, [records * (kill + 1) // (kills + 1) for kill in range(kills)])
    client.send(broker.bootstrap, topic, PARTITIONS, records, killer.on_acknowledged)
    killer.wait_until_done()

    read = client.read(broker.bootstrap, topic, end_offsets(broker, topic))

    prove_checker_on_a_planted_loss(killer.acknowledged, read)
    return check_delivery(killer.acknowledged, read)


def prove_checker_on_a_planted_loss(acknowledged: set[int], read: dict[int, list[int]]) -> None:
    """Take one record away, double another, swap two: the checker must see each."""
    honest = check_delivery(acknowledged, read)
    middle = len(read[0]) // 2
    lost, doubled, swapped = ({**read, 0: list(read[0])} for _ in range(3))
    del lost[0][middle]
    doubled[0].insert(middle, doubled[0][middle])
    swapped[0][middle], swapped[0][middle + 1] = swapped[0][middle + 1], swapped[0][middle]

    assert check_delivery(acknowledged, lost).lost == honest.lost + 1
    assert check_delivery(acknowledged, doubled).doubled == honest.doubled + 1
    assert check_delivery(acknowledged, swapped).misordered == honest.misordered + 1


def create_topic(broker: BrokerProcess, topic: str, **configs: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    requested = {"num_partitions": PARTITIONS, "replication_factor": 1, "configs": configs}
    admin.create_topics({topic: requested}, wait_for_metadata=True)
    admin.close()


def end_offsets(broker: BrokerProcess, topic: str) -> dict[int, int]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    offsets = consumer.end_offsets(partitions)
    consumer.close()
    return {partition.partition: offset for partition, offset in offsets.items()}


@pytest.mark.clients
@pytest.mark.timeout(900)
@pytest.mark.parametrize("client_name", NUMBERED_CLIENTS)
def test_everything_acknowledged_survives_a_kill_once_and_in_order(
    start_broker, topic: str, client_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = send_through_kills(start_broker(), client_name, topic, RECORDS, kills=1)

    with capsys.disabled():
        print(f"\n{client_name}, one kill: {delivery}")
    assert delivery.acknowledged == RECORDS
    assert delivery.is_exactly_once


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("client_name", NUMBERED_CLIENTS)
def test_everything_acknowledged_survives_many_kills_once_and_in_order(
    start_broker, topic: str, client_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = start_broker(settings={"log.segment.bytes": str(16 * 1024 * 1024)})

    delivery = send_through_kills(broker, client_name, topic, SOAK_RECORDS, SOAK_KILLS)

    with capsys.disabled():
        print(f"\n{client_name}, {SOAK_KILLS} kills: {delivery}")
    assert delivery.acknowledged == SOAK_RECORDS
    assert delivery.is_exactly_once


@pytest.mark.short
def test_bytes_that_a_crash_left_behind_the_last_batch_are_cut_off(
    start_broker, topic: str
) -> None:
    broker = start_broker()
    client = NUMBERED_CLIENTS["kafka-python"]
    create_topic(broker, topic)
    client.send(broker.bootstrap, topic, PARTITIONS, 300, lambda number: None)
    broker.kill()
    for segment in sorted(Path(broker.data_dir).glob(f"{topic}-*/*.log")):
        with segment.open("ab") as file:
            file.write(b"\x00" * 8 + b"\x00\x00\x10\x00" + b"half a batch")

    broker.start()
    client.send(broker.bootstrap, topic, PARTITIONS, 300, lambda number: None)

    read = client.read(broker.bootstrap, topic, end_offsets(broker, topic))
    expected = {part: list(range(part, 300, PARTITIONS)) * 2 for part in range(PARTITIONS)}
    assert read == expected


@pytest.mark.short
@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_topics_settings_and_committed_offsets_outlive_the_process(
    start_broker, topic: str, ending: str
) -> None:
    broker = start_broker()
    create_topic(broker, topic, **{"retention.ms": "7200000"})
    partition = TopicPartition(topic, 1)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="readers")
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(42, "so far", -1)})
    consumer.close()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    (before,) = admin.describe_topics([topic])
    admin.close()

    if ending == "stop":
        assert broker.stop() == 0
    else:
        broker.kill()
    broker.start()

    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    (after,) = admin.describe_topics([topic])
    configs = topic_configs(admin, topic)
    admin.close()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="readers")
    committed = consumer.committed(partition, metadata=True)
    consumer.close()
    assert after["topic_id"] == before["topic_id"]
    assert len(after["partitions"]) == PARTITIONS
    assert (committed.offset, committed.metadata) == (42, "so far")
    assert configs["retention.ms"]["value"] == "7200000"


def topic_configs(admin: KafkaAdminClient, topic: str) -> dict[str, dict[str, object]]:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    return admin.describe_configs([resource], config_filter="all")["topic"][topic]
