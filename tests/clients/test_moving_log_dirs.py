"""Replicas move between log directories while clients write and read them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaAdminClient, TopicPartitionReplica
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from kafka.errors import LogDirNotFoundError, NoError

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

WAIT_SECONDS_MAX = 100.0
PARTITIONS = 2
FILLER = b"x" * 500
AHEAD_MAX = 100
"""So many records may be sent and not yet acknowledged: a few thousand a second."""
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class Load:
    """One producer that sends numbers to each partition, one after the other, until stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.timeout.ms": 120_000,
            }
        )
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: dict[int, list[int]] = {each: [] for each in range(PARTITIONS)}
        self.errors: list[str] = []
        self._progress = threading.Condition()

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(WAIT_SECONDS_MAX)

    def finish(self) -> dict[int, list[int]]:
        """Send no more; what was acknowledged of each partition."""
        self.__exit__()
        assert self._producer.flush(WAIT_SECONDS_MAX) == 0
        assert not self.errors
        return self.acknowledged

    def wait_for(self, count: int) -> None:
        """Until so many more are acknowledged."""
        with self._progress:
            requested = self.count + count
            assert self._progress.wait_for(lambda: self.count >= requested, WAIT_SECONDS_MAX)

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(
                    self._topic,
                    b"%d " % number + FILLER,
                    partition=partition,
                    on_delivery=self._delivered(partition, number),
                )
            number += 1
            self._producer.poll(0)
            while len(self._producer) > AHEAD_MAX:
                self._producer.poll(0.01)

    def _delivered(self, partition: int, number: int) -> Callable[[Any, Any], None]:
        def delivered(error: Any, message: Any) -> None:
            with self._progress:
                if error is None:
                    self.acknowledged[partition].append(number)
                else:
                    self.errors.append(str(error))
                self._progress.notify_all()

        return delivered


class Bench:
    """A broker with two log directories, and a topic in them."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.paths = [str(folder / "a"), str(folder / "b")]
        self.broker = BrokerProcess(
            Path(",".join(self.paths)),
            settings={"log.segment.bytes": "1048576", **settings},
            log_path=folder / "broker.log",
        )
        self.topic = "moving"
        self.admin = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        self.admin.create_topics(
            {self.topic: {"num_partitions": PARTITIONS, "replication_factor": 1}},
            wait_for_metadata=True,
        )

    def close(self) -> None:
        self.admin.close()
        self.broker.kill()

    def replica(self, partition: int) -> TopicPartitionReplica:
        return TopicPartitionReplica(self.topic, partition, 1)

    def alter(self, targets: dict[int, str]) -> set[type]:
        replicas = {self.replica(partition): path for partition, path in targets.items()}
        return set(self.admin.alter_replica_log_dirs(replicas).values())

    def set_rate(self, bytes_per_second: str | None) -> None:
        """Bound the moves of the broker; None: no more."""
        change = (
            (AlterConfigOp.DELETE, None)
            if bytes_per_second is None
            else (AlterConfigOp.SET, bytes_per_second)
        )
        resource = ConfigResource(ConfigResourceType.BROKER, "1", {RATE: change})
        answer = self.admin.alter_configs([resource], raise_on_unknown=False)
        assert answer == {"broker": {"1": "OK"}}, answer

    def places(self) -> dict[tuple[int, bool], str]:
        """The directory of each partition's log (False) and of its copy (True)."""
        return {key: directory for key, (directory, _) in self._described().items()}

    def sizes(self) -> dict[tuple[int, bool], int]:
        """The bytes of the same."""
        return {key: size for key, (_, size) in self._described().items()}

    def _described(self) -> dict[tuple[int, bool], tuple[str, int]]:
        (described,) = self.admin.describe_log_dirs()
        return {
            (each["partition_index"], each["is_future_key"]): (
                directory["log_dir"],
                each["partition_size"],
            )
            for directory in described["log_dirs"]
            for topic in directory["topics"]
            if topic["name"] == self.topic
            for each in topic["partitions"]
        }

    def wait_until(self, holds: Callable[[], bool]) -> None:
        wait_until(holds, otherwise=lambda: self.broker.log[-3000:])

    def wait_moved(self, targets: dict[int, str]) -> None:
        requested = {(partition, False): path for partition, path in targets.items()}
        self.wait_until(lambda: self.places() == requested)

    def folders(self, partition: int) -> list[str]:
        """In which of the directories a partition has a folder."""
        name = f"{self.topic}-{partition}"
        return [path for path in self.paths if (Path(path) / name).is_dir()]

    def read_all(self, counts: dict[int, int]) -> dict[int, list[int]]:
        """The numbers in each partition from its beginning, so many at least."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "reader"})
        consumer.assign([TopicPartition(self.topic, each, 0) for each in counts])
        found: dict[int, list[int]] = {each: [] for each in counts}
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while any(len(found[each]) < count for each, count in counts.items()):
            assert time.monotonic() < deadline, {each: len(found[each]) for each in found}
            for message in consumer.consume(1000, 0.5):
                assert message.error() is None
                found[message.partition()].append(int(message.value().split()[0]))
        consumer.close()
        return found


@pytest.fixture
def settings() -> dict[str, str]:
    """Settings of the broker, for a test that needs some of its own."""
    return {}


@pytest.fixture
def bench(tmp_path: Path, settings: dict[str, str]) -> Iterator[Bench]:
    bench = Bench(tmp_path, settings)
    yield bench
    bench.close()


def check(bench: Bench, acknowledged: dict[int, list[int]]) -> None:
    """All that was acknowledged is there, once and in order."""
    found = bench.read_all({each: len(numbers) for each, numbers in acknowledged.items()})
    for partition, numbers in acknowledged.items():
        assert all(after == before + 1 for before, after in pairwise(numbers))
        assert found[partition] == numbers


def test_replicas_move_under_load_and_keep_everything_in_order(bench: Bench) -> None:
    begun = {partition: path for (partition, _), path in bench.places().items()}
    (first, second) = (begun[0], next(each for each in bench.paths if each != begun[0]))
    with Load(bench.broker.bootstrap, bench.topic) as load:
        load.wait_for(3_000)
        for targets in ({0: second, 1: second}, {0: first, 1: second}, {0: second, 1: first}):
            assert bench.alter(targets) == {NoError}
            bench.wait_moved(targets)
            load.wait_for(500)
        acknowledged = load.finish()
    assert [bench.folders(each) for each in range(PARTITIONS)] == [[second], [first]]
    check(bench, acknowledged)
    bench.broker.restart()
    assert [bench.folders(each) for each in range(PARTITIONS)] == [[second], [first]]
    check(bench, acknowledged)


@pytest.mark.parametrize("settings", [{"replica.fetch.max.bytes": "20000"}])
def test_a_move_goes_on_after_its_broker_was_killed(bench: Bench) -> None:
    with Load(bench.broker.bootstrap, bench.topic) as load:
        load.wait_for(5_000)
        acknowledged = load.finish()
    bench.set_rate("20000")  # so that it takes a minute
    source = bench.places()[0, False]
    target = next(each for each in bench.paths if each != source)
    assert bench.alter({0: target}) == {NoError}
    bench.wait_until(lambda: bench.sizes()[0, True] > 0)
    assert bench.sizes()[0, True] < bench.sizes()[0, False]
    bench.broker.kill()
    bench.admin.close()
    bench.broker.start()
    bench.admin = KafkaAdminClient(bootstrap_servers=bench.broker.bootstrap)
    assert bench.places()[0, True] == target, "it was so slow that it cannot be done"
    bench.set_rate(None)
    bench.wait_until(lambda: bench.places().get((0, True)) is None)
    assert bench.folders(0) == [target]
    check(bench, acknowledged)
    assert not list(Path(target).glob("*-future"))


def test_a_directory_that_is_none_is_refused(bench: Bench) -> None:
    before = bench.places()
    assert bench.alter({0: "/nowhere"}) == {LogDirNotFoundError}
    assert bench.places() == before
