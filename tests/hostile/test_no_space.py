"""No space left: appends fail, what was acknowledged stays, and appends work again with room."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from support.kafka_process import KafkaProcess
from support.raw_connection import RawConnection, build_batch

from odradek.testing.process.broker_process import BrokerProcess

NONE = 0
KAFKA_STORAGE_ERROR = 56

DISK_BYTES = 48 * 1024 * 1024
ROOM_BYTES = 3 * 1024 * 1024
VALUE_BYTES = 200_000
READ_SECONDS_MAX = 120.0
SEED = 20
TOPIC = "fills-up"

Produce = Callable[[bytes], int]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own, of `DISK_BYTES`."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk; the test with a file size limit runs")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def refuse_if_kafka(broker: BrokerProcess) -> None:
    if isinstance(broker, KafkaProcess):
        pytest.skip("Apache Kafka takes a full folder offline, and ends if it has no other")


def test_full_disk_refuses_appends_until_there_is_room(start_broker, small_disk: Path) -> None:
    broker = start_broker(data_dir=small_disk / "data")
    refuse_if_kafka(broker)
    filler = small_disk / "filler"

    def fill() -> None:
        disk = os.statvfs(small_disk)
        filler.write_bytes(b"\xff" * (disk.f_bavail * disk.f_frsize - ROOM_BYTES))

    check_appends_fail_and_work_again(broker, fill, filler.unlink)


def test_file_size_limit_refuses_appends_until_it_is_lifted(start_broker) -> None:
    broker = start_broker()
    refuse_if_kafka(broker)
    _, hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)

    def limit(soft: int) -> None:
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (soft, hard))

    check_appends_fail_and_work_again(broker, lambda: limit(ROOM_BYTES), lambda: limit(hard))


def check_appends_fail_and_work_again(
    broker: BrokerProcess, take_room: Callable[[], object], give_room: Callable[[], object]
) -> None:
    """Append until there is no room, and beyond; give room, append again; restart; read all."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({TOPIC: {"num_partitions": 1}}, wait_for_metadata=True)
    admin.close()
    random_bytes = random.Random(SEED).randbytes
    acknowledged: list[bytes] = []

    with RawConnection(broker.port) as connection:

        def produce() -> int:
            value = random_bytes(VALUE_BYTES)
            error = produce_one(connection, value)
            if error == NONE:
                acknowledged.append(value)
            return error

        assert produce() == NONE
        take_room()
        errors = [produce() for _ in range(2 * ROOM_BYTES // VALUE_BYTES)]
        refused = errors.count(KAFKA_STORAGE_ERROR)
        assert set(errors) == {NONE, KAFKA_STORAGE_ERROR}
        assert errors[-1] == KAFKA_STORAGE_ERROR
        assert refused >= ROOM_BYTES // VALUE_BYTES // 2
        assert read_all(broker, len(acknowledged)) == acknowledged

        give_room()
        assert [produce() for _ in range(5)] == [NONE] * 5
        assert read_all(broker, len(acknowledged)) == acknowledged

    broker.restart()
    assert read_all(broker, len(acknowledged)) == acknowledged


def produce_one(connection: RawConnection, value: bytes) -> int:
    """Produce one record, and return the partition's error code."""
    topic_type = ProduceRequest.TopicProduceData
    records = build_batch([value], timestamp_ms=int(time.time() * 1000))
    part = topic_type.PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[topic_type(name=TOPIC, partition_data=[part])],
    )
    response = connection.ask(request, ProduceResponse, 9)
    return response.responses[0].partition_responses[0].error_code


def read_all(broker: BrokerProcess, count: int) -> list[bytes]:
    """The topic's values; there are exactly `count` of them."""
    partition = TopicPartition(TOPIC, 0)
    values: list[bytes] = []
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    try:
        assert consumer.end_offsets([partition]) == {partition: count}
        consumer.assign([partition])
        deadline = time.monotonic() + READ_SECONDS_MAX
        while len(values) < count:
            assert time.monotonic() < deadline, f"{len(values)} of {count} records came"
            for records in consumer.poll(timeout_ms=1000).values():
                values += [record.value for record in records]
        return values
    finally:
        consumer.close()
