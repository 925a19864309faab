"""The broker is killed again and again while segments roll, are compacted, deleted and flushed.

Three topics with segments as small as Kafka allows: of `numbers` nothing goes, `latest` is
compacted, `recent` keeps two segments. One idempotent producer writes to all of them through
every kill. After each start what was acknowledged is in place; at the end it is there once and
in order, as far as the topic keeps it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from support.raw_connection import RawConnection

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

KILLS = 25
SOAK_KILLS = 400
PARTITIONS = 2
KEYS = 200
VALUE_BYTES = 600
SEGMENT_BYTES = 1024 * 1024
RECORDS_PER_LIFE = (50, 3000)
"""So many records are acknowledged between two kills, by chance."""

LATEST, EARLIEST = -1, -2
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
NOT_THERE_YET = {LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER}
ANSWER_SECONDS_MAX = 120
LIST_OFFSETS_VERSION = 5

CLIENT = {"log_level": 2, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
SETTINGS = {
    "log.segment.bytes": str(SEGMENT_BYTES),
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}
TOPICS = {
    "numbers": {},
    "latest": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
    "recent": {"retention.bytes": str(2 * SEGMENT_BYTES), "file.delete.delay.ms": "100"},
}

Where = tuple[str, int]
"""A topic and a partition of it."""

Found = tuple[int, bytes, int]
"""Offset, key and number of a record."""


class Load:
    """A producer's thread that numbers its records, and notes what was acknowledged.

    Args:
        bootstrap: of the broker.
        thresholds: so many acknowledgements let `wait_for_next` return, one after another.
    """

    def __init__(self, bootstrap: str, thresholds: list[int]) -> None:
        self.end_offsets: dict[Where, int] = defaultdict(int)
        """After the last record acknowledged, by topic and partition."""
        self.acknowledged: dict[Where, list[int]] = defaultdict(list)
        self._thresholds = thresholds
        self._due = threading.Semaphore(0)
        self._count = 0
        self._failure: BaseException | None = None
        self._stopped = False
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "queue.buffering.max.messages": 3000,
                "delivery.timeout.ms": 300_000,
                **CLIENT,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for_next(self) -> None:
        """Wait until the next threshold is reached."""
        assert self._due.acquire(timeout=120), f"no more acknowledgements: {self._failure}"

    def stop(self) -> None:
        """Send no more, and wait until all that was sent is acknowledged."""
        self._stopped = True
        self._thread.join(ANSWER_SECONDS_MAX)
        assert self._producer.flush(ANSWER_SECONDS_MAX) == 0
        assert self._failure is None, self._failure

    def _run(self) -> None:
        try:
            number = 0
            while not self._stopped:
                for topic in TOPICS:
                    self._send(topic, number)
                number += 1
        except BaseException as failure:
            self._failure = failure
            raise

    def _send(self, topic: str, number: int) -> None:
        key, value = b"%d" % (number % KEYS), (b"%d " % number).ljust(VALUE_BYTES, b".")
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                break
            except BufferError:
                self._producer.poll(0.5)
        self._producer.poll(0)

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        where = (message.topic(), message.partition())
        self.end_offsets[where] = max(self.end_offsets[where], message.offset() + 1)
        self.acknowledged[where].append(number_of(message))
        self._count += 1
        if self._thresholds and self._count >= self._thresholds[0]:
            self._thresholds.pop(0)
            self._due.release()


def number_of(message: Message) -> int:
    return int(message.value().split(b" ")[0])


def kill_again_and_again(broker: BrokerProcess, kills: int, source: random.Random) -> Load:
    """Kill the broker at random moments, and look each time what is left."""
    thresholds = []
    for _ in range(kills):
        thresholds.append((thresholds or [0])[-1] + source.randint(*RECORDS_PER_LIFE))
    load = Load(broker.bootstrap, thresholds)
    for _ in range(kills):
        load.wait_for_next()
        broker.kill()
        promised = dict(load.end_offsets)
        broker.start()
        for where, end_offset in end_offsets(broker, list(promised)).items():
            assert end_offset >= promised[where], where
    load.stop()
    return load


def end_offsets(
    broker: BrokerProcess, requested: list[Where], timestamp: int = LATEST
) -> dict[Where, int]:
    """Where the partitions end, or begin, asked as soon as the broker is there."""
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    topics = [
        topic_type(
            name=topic,
            partitions=[
                topic_type.ListOffsetsPartition(
                    partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
                )
                for of_topic, partition in requested
                if of_topic == topic
            ],
        )
        for topic in {topic for topic, _ in requested}
    ]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    with RawConnection(broker.port) as connection:
        while True:
            answer = connection.ask(request, ListOffsetsResponse, LIST_OFFSETS_VERSION)
            found = {
                (each.name, of.partition_index): (of.error_code, of.offset)
                for each in answer.topics
                for of in each.partitions
            }
            assert found.keys() == set(requested)
            codes = {code for code, _ in found.values()}
            if codes <= {0}:
                return {where: offset for where, (_, offset) in found.items()}
            assert codes <= {0, *NOT_THERE_YET}
            assert time.monotonic() < deadline, found


def read_all(broker: BrokerProcess, requested: list[Where]) -> dict[Where, list[Found]]:
    """Offset, key and number of every record of some partitions."""
    settings = {"group.id": "unused", "enable.partition.eof": True, "check.crcs": True, **CLIENT}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
    consumer.assign([ConfluentTopicPartition(*where, OFFSET_BEGINNING) for where in requested])
    found: dict[Where, list[Found]] = {where: [] for where in requested}
    unfinished = set(requested)
    while unfinished:
        message = consumer.poll(ANSWER_SECONDS_MAX)
        assert message is not None, "reading took too long"
        where = (message.topic(), message.partition())
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            unfinished.discard(where)
        else:
            found[where].append((message.offset(), message.key(), number_of(message)))
    consumer.close()
    return found


def let_no_more_be_deleted(
    broker: BrokerProcess, admin: AdminClient, requested: list[Where]
) -> None:
    """Wait until something was, and keep the rest: a segment must not go while it is read."""
    recent = [where for where in requested if where[0] == "recent"]

    def begins() -> dict[Where, int]:
        return end_offsets(broker, recent, EARLIEST)

    wait_until(
        lambda: all(begins().values()), ANSWER_SECONDS_MAX, lambda: f"not deleted: {begins()}"
    )
    keep = ConfigEntry("retention.bytes", "-1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "recent", incremental_configs=[keep])
    admin.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS_MAX)


def check_topics(broker: BrokerProcess, load: Load) -> None:
    everything = read_all(broker, list(load.acknowledged))
    for (topic, partition), numbers in load.acknowledged.items():
        found = everything[topic, partition]
        offsets = [offset for offset, _, _ in found]
        if topic == "latest":
            last = {number % KEYS: number for number in numbers}
            left = {number % KEYS: number for _, _, number in found}
            assert left == last
            assert offsets == sorted(set(offsets))
            assert len(found) < len(numbers), "nothing was compacted"
            continue
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
        assert [number for _, _, number in found] == numbers[len(numbers) - len(found) :]
        if topic == "numbers":
            assert len(found) == len(numbers)
        else:
            assert len(found) < len(numbers), "nothing was deleted"


def run(start_broker, kills: int) -> None:
    broker = start_broker(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **CLIENT})
    topics = [NewTopic(name, PARTITIONS, 1, config=configs) for name, configs in TOPICS.items()]
    for created in admin.create_topics(topics).values():
        created.result(ANSWER_SECONDS_MAX)
    load = kill_again_and_again(broker, kills, random.Random(kills))
    let_no_more_be_deleted(broker, admin, list(load.acknowledged))
    check_topics(broker, load)


@pytest.mark.clients
@pytest.mark.timeout(900)
def test_kills_while_segments_come_and_go_cost_nothing(start_broker) -> None:
    run(start_broker, KILLS)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_kills_while_segments_come_and_go_cost_nothing(start_broker) -> None:
    run(start_broker, SOAK_KILLS)
