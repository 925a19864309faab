"""Kafka Streams in a streams group (KIP-1071): its instances are killed, and count exactly."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from support.streams_instance import COUNTS, LINES, StreamsInstance

from odradek.testing.process.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

APPLICATION = "word-count"
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
PARTITIONS = 4
SECONDS_MAX = 120.0
SETTINGS = {
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "2000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.initial.rebalance.delay.ms": "300",
    "group.streams.num.standby.replicas": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
Start = Callable[[str], StreamsInstance]


class Lines:
    """What the application reads: lines of words, and how often each word was in them.

    Args:
        bootstrap: the broker.
    """

    def __init__(self, bootstrap: str) -> None:
        self.words: Counter[str] = Counter()
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 2})
        self._sent = 0

    def send(self, count: int) -> None:
        """Send some more, and wait until they are there."""
        for _ in range(count):
            words = ("every", f"w{self._sent % 13}", f"w{self._sent % 7}")
            self._producer.produce(LINES, " ".join(words), partition=self._sent % PARTITIONS)
            self.words.update(words)
            self._sent += 1
        assert self._producer.flush(SECONDS_MAX) == 0


class Counts:
    """What the application has written: of each word, ever larger counts.

    Args:
        bootstrap: the broker.
    """

    def __init__(self, bootstrap: str) -> None:
        self.last: Counter[str] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "counts",
                "isolation.level": "read_committed",
                "log_level": 2,
            }
        )
        self._consumer.assign([TopicPartition(COUNTS, each, 0) for each in range(PARTITIONS)])

    def read_until(self, words: Counter[str]) -> None:
        """Read until all words have these counts; one that is counted twice is told at once."""
        deadline = time.monotonic() + SECONDS_MAX
        while self.last != words:
            assert time.monotonic() < deadline, (self.last, words)
            for record in self._consumer.consume(500, 0.2):
                assert record.error() is None
                word, count = record.key().decode(), int.from_bytes(record.value(), "big")
                assert self.last[word] < count <= words[word], (word, count, self.last[word])
                self.last[word] = count

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 2})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (LINES, COUNTS)]
        for made in admin.create_topics(topics).values():
            made.result(SECONDS_MAX)
        yield broker


@pytest.fixture
def start(java_command: list[str], broker: BrokerProcess, tmp_path: Path) -> Iterator[Start]:
    """Start an instance of a name."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(
            StreamsInstance(java_command, broker.bootstrap, APPLICATION, tmp_path, name)
        )


def test_counts_are_exact_although_both_instances_are_killed_in_turn(
    broker: BrokerProcess, start: Start, java: Callable[..., str]
) -> None:
    lines, counts = Lines(broker.bootstrap), Counts(broker.bootstrap)
    lines.send(400)
    one = start("one")
    one.wait_until_running()
    two = start("two")
    two.wait_until_running()
    counts.read_until(lines.words)

    lines.send(400)
    one.kill()
    lines.send(400)
    counts.read_until(lines.words)

    one = start("one")
    one.wait_until_running()
    lines.send(400)
    two.kill()
    lines.send(400)
    counts.read_until(lines.words)
    counts.close()

    listed = java(TOOL, "--bootstrap-server", broker.bootstrap, "--list")
    assert listed.split() == [APPLICATION]
    members = java(
        TOOL,
        "--bootstrap-server",
        broker.bootstrap,
        "--describe",
        "--members",
        "--group",
        APPLICATION,
    )
    assert members.count("one-StreamThread") == 2
    offsets = java(
        TOOL, "--bootstrap-server", broker.bootstrap, "--describe", "--group", APPLICATION
    )
    rows = [line.split() for line in offsets.splitlines() if line.startswith(APPLICATION)]
    assert sorted(row[1:] for row in rows if row[1] == LINES) == [
        [LINES, str(number), "0"] for number in range(PARTITIONS)
    ]
