"""A broker of few file descriptors, and a flood of connections that would take them all."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as AssignedPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from support.raw_connection import RawConnection

from odradek.testing.waiting import wait_until

LIMIT = 128
FLOOD = 1_000
WIDE_PARTITIONS = 200
"""More than the limit lets segments be open."""
SECONDS_MAX = 60.0
SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}


class SmallBroker:
    """A broker process that may have `LIMIT` files open, or as many as soft and hard limits say."""

    def __init__(self, folder: Path, limits: tuple[int, int] = (LIMIT, LIMIT)) -> None:
        self.log_path = folder / "broker.log"
        options = [part for item in SETTINGS.items() for part in ("-o", "=".join(item))]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "odradek", "serve", "-v"),
                    *("--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")),
                    *options,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),
            )
        assert self.process.stdout is not None
        found = re.search(r"127.0.0.1:(\d+)", self.process.stdout.readline())
        assert found is not None, self.log
        self.port = int(found[1])
        self.bootstrap = f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.log_path.read_text()


@pytest.fixture
def limit() -> int:
    """Of the descriptors of `small`; a test may have another."""
    return LIMIT


@pytest.fixture
def small(tmp_path: Path, limit: int) -> Iterator[SmallBroker]:
    broker = SmallBroker(tmp_path, (limit, limit))
    yield broker
    broker.process.terminate()
    assert broker.process.wait(SECONDS_MAX) == 0


@pytest.fixture
def flood(small: SmallBroker) -> Iterator[list[socket.socket]]:
    """Connections that are never used, more than the broker can have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2 * FLOOD, hard)), hard))
    connections: list[socket.socket] = []

    yield connections
    for each in connections:
        each.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


GOOD_FOR = re.compile(
    r"(INFO|WARNING).*the limit of open files is (\d+) \(it was (\d+) at the start\): good for "
    r"(\d+) connections and (\d+) open segments of logs; (\d+) descriptors are in reserve(.*)"
)


def test_the_log_says_at_the_start_what_the_limit_is_good_for(small: SmallBroker) -> None:
    found = GOOD_FOR.search(small.log)
    assert found is not None, small.log
    limit, before, connections, segments, reserve = map(int, found.groups()[1:-1])
    assert limit == before == LIMIT
    assert connections + segments + reserve <= LIMIT
    assert found[1] == "WARNING"
    assert found[7] == "; raise it (ulimit -n) to serve more"
    with ExitStack() as held:
        for _ in range(connections):  # so many are served at the same time
            each = held.enter_context(RawConnection(small.port))
            each.assert_served()


def test_a_limit_that_was_raised_and_is_enough_is_no_warning(tmp_path: Path) -> None:
    broker = SmallBroker(tmp_path, (64, 4096))
    found = GOOD_FOR.search(broker.log)
    broker.process.terminate()
    assert broker.process.wait(SECONDS_MAX) == 0
    assert found is not None, broker.log
    assert (found[1], found[2], found[3], found[7]) == ("INFO", "4096", "64", "")


def connect_all(small: SmallBroker, connections: list[socket.socket]) -> None:
    address = ("127.0.0.1", small.port)
    for _ in range(FLOOD):
        connections.append(socket.create_connection(address, timeout=SECONDS_MAX))


def test_a_flood_of_connections_takes_nothing_that_the_broker_needs(
    small: SmallBroker, flood: list[socket.socket]
) -> None:
    assert f"the limit of open files is {LIMIT}" in small.log
    with RawConnection(small.port) as good:
        good.assert_served()
        connect_all(small, flood)
        good.assert_served()
        work(small)  # the first use of all that it does
        connect_all(small, flood)
        good.assert_served()
    for each in flood:
        each.close()
    read_wide(small)
    assert small.process.poll() is None
    assert "Traceback" not in small.log


def work(small: SmallBroker) -> None:
    """Topics are made, written, compacted, and read by a group."""
    admin = KafkaAdminClient(bootstrap_servers=small.bootstrap)
    compacted = {"num_partitions": 1, "configs": {"cleanup.policy": "compact"}}
    compacted["configs"]["segment.bytes"] = str(1 << 20)
    compacted["configs"]["segment.ms"] = "100"
    admin.create_topics(
        {"compacted": compacted, "wide": {"num_partitions": WIDE_PARTITIONS}},
        wait_for_metadata=True,
    )
    assert admin.list_groups() == []
    producer = KafkaProducer(bootstrap_servers=small.bootstrap, acks="all", linger_ms=50)
    began_ms = int(time.time() * 1000) - 10_000
    for round_ in range(3):  # a second apart, by their timestamps: each rolls a segment
        for key in range(20):
            value, at_ms = b"%d" % round_, began_ms + 1000 * round_
            producer.send("compacted", key=b"%d" % key, value=value, timestamp_ms=at_ms)
        producer.flush()
    for partition in range(WIDE_PARTITIONS):
        producer.send("wide", b"value", partition=partition)
    producer.flush()
    producer.close()
    read_wide(small)
    consumer = KafkaConsumer(
        "compacted",
        bootstrap_servers=small.bootstrap,
        group_id="group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=5000,
    )
    assert sum(1 for _ in consumer) >= 20
    consumer.commit()
    consumer.close()
    assert [group["group_id"] for group in admin.list_groups()] == ["group"]
    admin.close()
    wait_until(lambda: "cleaned compacted-0" in small.log, SECONDS_MAX)


def read_wide(small: SmallBroker) -> None:
    """A record of each partition, in answers that hold more files than may be open."""
    consumer = KafkaConsumer(
        bootstrap_servers=small.bootstrap, auto_offset_reset="earliest", group_id=None
    )
    partitions = [TopicPartition("wide", each) for each in range(WIDE_PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    seen: set[int] = set()

    def read() -> bool:
        for batch in consumer.poll(timeout_ms=1000).values():
            seen.update(record.partition for record in batch)
        return len(seen) == WIDE_PARTITIONS

    wait_until(read, SECONDS_MAX, lambda: f"only {len(seen)} of {WIDE_PARTITIONS} were read")
    consumer.close()


MANY_LIMIT = 512
TOPICS, PARTITIONS_EACH = 100, 100


@pytest.mark.slow
@pytest.mark.parametrize("limit", [MANY_LIMIT])
def test_ten_thousand_partitions_are_written_and_read_with_few_descriptors(
    small: SmallBroker, limit: int
) -> None:
    descriptors = Path(f"/proc/{small.process.pid}/fd")
    counts = []
    names = [f"topic-{number}" for number in range(TOPICS)]
    everything = {(name, partition) for name in names for partition in range(PARTITIONS_EACH)}

    client = {"bootstrap.servers": small.bootstrap}
    admin = AdminClient(client)
    made = admin.create_topics(
        [NewTopic(name, PARTITIONS_EACH, 1) for name in names], request_timeout=SECONDS_MAX
    )
    for each in made.values():
        each.result(SECONDS_MAX)
    counts.append(len(os.listdir(descriptors)))

    refused: list[object] = []
    producer = Producer({**client, "linger.ms": 100})
    for name, partition in everything:
        producer.produce(
            name,
            f"{name}-{partition}",
            partition=partition,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0
    assert refused == []
    counts.append(len(os.listdir(descriptors)))

    consumer = Consumer({**client, "group.id": "not used", "enable.auto.commit": False})
    consumer.assign([AssignedPartition(name, partition, 0) for name, partition in everything])
    unread = set(everything)
    while unread:
        records = consumer.consume(1_000, SECONDS_MAX)
        assert records, f"{len(unread):,} partitions were not read"
        for each in records:
            assert each.error() is None
            assert each.value() == f"{each.topic()}-{each.partition()}".encode()
            unread.discard((each.topic(), each.partition()))
        counts.append(len(os.listdir(descriptors)))
    consumer.close()
    assert max(counts) < limit
    assert "Traceback" not in small.log
    assert "Too many open files" not in small.log
