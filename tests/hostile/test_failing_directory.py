"""Log directories that fail on real file systems: the others go on, seen by a real client."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from support.raw_connection import RawConnection, build_batch

from odradek.testing.process.broker_process import BrokerProcess, BrokerStartError
from odradek.testing.waiting import wait_until

TOPIC = "spread"
PARTITIONS = 4
WAIT_SECONDS_MAX = 120.0
NONE = 0
LEADER_NOT_AVAILABLE = 5
KAFKA_STORAGE_ERROR = 56
SMALL_DISK_BYTES = 4 * 1024 * 1024
SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": "100"}
"""So that a folder that is gone is noticed soon: nothing is opened anew for an append."""

Start = Callable[[], BrokerProcess]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "first", tmp_path / "second"


@pytest.fixture
def start(tmp_path: Path, folders: tuple[Path, Path]) -> Iterator[Start]:
    """Start a broker on both folders, once more each time; it is stopped at the end."""
    first, second = folders
    broker = BrokerProcess(
        Path(f"{first},{second}"),
        settings=SETTINGS,
        log_path=tmp_path / "broker.log",
        start=False,
    )

    def start_it() -> BrokerProcess:
        broker.restart()
        return broker

    yield start_it
    if broker.is_running:
        broker.stop()
    broker.kill()


@pytest.fixture
def spread(start: Start) -> BrokerProcess:
    """A broker that has a topic with a record in each partition."""
    broker = start()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({TOPIC: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
    admin.close()
    assert produce(broker) == [NONE] * PARTITIONS
    return broker


def produce(broker: BrokerProcess, size: int = 10) -> list[int]:
    """Send a record to each partition; the error codes of the answers."""
    topic_type = ProduceRequest.TopicProduceData
    parts = [
        topic_type.PartitionProduceData(
            index=partition,
            records=build_batch([bytes(size)], timestamp_ms=int(time.time() * 1000)),
        )
        for partition in range(PARTITIONS)
    ]
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[topic_type(name=TOPIC, partition_data=parts)],
    )
    with RawConnection(broker.port) as connection:
        answer = connection.ask(request, ProduceResponse, 9).responses[0].partition_responses
    return [each.error_code for each in sorted(answer, key=lambda each: each.index)]


def produce_by_client(broker: BrokerProcess, partitions: set[int]) -> None:
    """Send a record to each of these partitions, by a real client that is idempotent."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
    for partition in partitions:
        producer.send(TOPIC, b"value", partition=partition).get(WAIT_SECONDS_MAX)
    producer.close()


def consume(broker: BrokerProcess, partition: int) -> int:
    """How many records a partition has."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    try:
        requested = TopicPartition(TOPIC, partition)
        consumer.assign([requested])
        end = consumer.end_offsets([requested])[requested]
        count = 0
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while count < end and time.monotonic() < deadline:
            count += sum(map(len, consumer.poll(timeout_ms=500).values()))
        assert count == end
        return count
    finally:
        consumer.close()


def partitions_in(folder: Path) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in folder.glob(f"{TOPIC}-*")}


def remove_at_once(folder: Path) -> None:
    """Remove a folder in which files are being written."""
    shutil.rmtree(folder.rename(folder.with_name(f"{folder.name}-gone")))


def remove(broker: BrokerProcess, folder: Path) -> None:
    """Remove a folder, and wait for the broker to notice.

    It does with the next checkpoint, which is written when high watermarks have moved.
    """
    remove_at_once(folder)
    produce(broker)
    text = f"{folder} is offline until a restart"
    wait_until(lambda: text in broker.log, otherwise=lambda: f"{text!r} is not in {broker.log}")


def described(broker: BrokerProcess) -> dict[int, tuple[int, int, list[int]]]:
    """By partition: error, leader and offline replicas, as Metadata tells them."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        (topic,) = admin.describe_topics([TOPIC])
    finally:
        admin.close()
    return {
        each["partition_index"]: (each["error_code"], each["leader_id"], each["offline_replicas"])
        for each in topic["partitions"]
    }


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """A file system of its own at a folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)]
    subprocess.run(command, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("lost_number", [0, 1], ids=["first", "second"])
def test_a_folder_that_vanishes_takes_only_its_partitions_offline(
    spread: BrokerProcess, folders: tuple[Path, Path], lost_number: int
) -> None:
    folder = folders[lost_number]
    lost = partitions_in(folder)
    kept = set(range(PARTITIONS)) - lost
    assert len(lost) == len(kept) == PARTITIONS // 2
    remove(spread, folder)

    expected = [KAFKA_STORAGE_ERROR if number in lost else NONE for number in range(PARTITIONS)]
    assert produce(spread) == expected
    produce_by_client(spread, kept)
    assert {consume(spread, partition) for partition in kept} == {4}
    left = {
        partition: (LEADER_NOT_AVAILABLE, -1, [1]) if partition in lost else (NONE, 1, [])
        for partition in range(PARTITIONS)
    }
    # The controller hears of it, and tells everybody, after the folder is offline.
    wait_until(lambda: described(spread) == left, WAIT_SECONDS_MAX, lambda: str(described(spread)))

    directories = describe_log_dirs(spread)
    assert directories[str(folder)] == (KAFKA_STORAGE_ERROR, set())
    assert directories[str(folders[1 - lost_number])] == (0, kept)
    assert spread.stop() == 0


def describe_log_dirs(broker: BrokerProcess) -> dict[str, tuple[int, set[int]]]:
    """By folder: its error, and the topic's partitions in it."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        (answer,) = admin.describe_log_dirs()
    finally:
        admin.close()
    return {
        each["log_dir"]: (
            each["error_code"],
            {
                partition["partition_index"]
                for topic in each["topics"]
                if topic["name"] == TOPIC
                for partition in topic["partitions"]
            },
        )
        for each in answer["log_dirs"]
    }


def test_new_partitions_go_to_the_folder_that_is_left(
    spread: BrokerProcess, folders: tuple[Path, Path]
) -> None:
    remove(spread, folders[1])
    admin = KafkaAdminClient(bootstrap_servers=spread.bootstrap)
    admin.create_topics({"later": {"num_partitions": 2}}, wait_for_metadata=True)
    admin.close()
    assert len(list(folders[0].glob("later-*"))) == 2


def test_the_broker_ends_when_the_last_folder_is_gone(
    spread: BrokerProcess, folders: tuple[Path, Path]
) -> None:
    remove(spread, folders[1])
    remove_at_once(folders[0])
    with suppress(ConnectionError):  # it may have noticed before it is asked, and ended
        produce(spread)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while spread.is_running:
        assert time.monotonic() < deadline, "the broker did not end"
        os.sched_yield()
    assert "odradek serve: no log directory is left" in spread.log
    assert spread.stop() == 1


def test_a_folder_of_a_read_only_file_system_is_offline_until_it_can_be_written(
    spread: BrokerProcess, start: Start, folders: tuple[Path, Path]
) -> None:
    lost = partitions_in(folders[1])
    spread.stop()
    with mounted(folders[1], "-o", "ro"):
        broker = start()
        assert os.strerror(errno.EROFS) in broker.log
        outcomes = produce(broker)
        assert {number for number in range(PARTITIONS) if outcomes[number] != NONE} == lost
        broker.stop()
    broker = start()
    assert produce(broker) == [NONE] * PARTITIONS
    assert [consume(broker, number) for number in range(PARTITIONS)] == [
        2 if number in lost else 3 for number in range(PARTITIONS)
    ]


def test_a_folder_that_is_full_refuses_appends_and_stays_online(
    start: Start, folders: tuple[Path, Path]
) -> None:
    with mounted(folders[1], "-o", f"size={SMALL_DISK_BYTES}"):
        broker = start()
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics({TOPIC: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
        admin.close()
        filler = folders[1] / "filler"
        disk = os.statvfs(folders[1])
        filler.write_bytes(b"\xff" * (disk.f_bavail * disk.f_frsize - 16 * 1024))
        full = partitions_in(folders[1])
        outcomes = produce(broker, size=100_000)
        for partition in range(PARTITIONS):
            expected = KAFKA_STORAGE_ERROR if partition in full else NONE
            assert outcomes[partition] == expected, partition
        assert describe_log_dirs(broker)[str(folders[1])] == (0, full)
        filler.unlink()
        assert produce(broker, size=100_000) == [NONE] * PARTITIONS
        broker.stop()


def test_nothing_starts_where_no_folder_can_be_used(
    start: Start, folders: tuple[Path, Path]
) -> None:
    for folder in folders:
        folder.write_text("in the way")
    with pytest.raises(BrokerStartError, match="odradek serve: no log directory is left"):
        start()


def test_metadata_kept_elsewhere_outlive_the_first_folder(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    first, second = folders
    settings = {**SETTINGS, "metadata.log.dir": str(tmp_path / "metadata")}
    paths = Path(f"{first},{second}")
    log_path = tmp_path / "broker.log"
    with BrokerProcess(paths, settings=settings, log_path=log_path) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics({TOPIC: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
        admin.close()
        lost = partitions_in(first)
    first.rename(tmp_path / "unplugged")
    first.write_text("in the way")
    with BrokerProcess(paths, settings=settings, log_path=log_path) as broker:
        outcomes = produce(broker)
        assert {number for number in range(PARTITIONS) if outcomes[number] != NONE} == lost
    settings = dict(SETTINGS)
    with pytest.raises(BrokerStartError, match=r"metadata lie there, unless metadata\.log\.dir"):
        BrokerProcess(paths, settings=settings, log_path=log_path)
