"""Backups as docs/operations.md has them: of a stopped broker, and of a snapshot of its disk."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.testing.process.broker_process import BrokerProcess

pytestmark = pytest.mark.clients

SECONDS = 120
TOPIC, GROUP = "orders", "readers"
SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


def write(broker: BrokerProcess, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(SECONDS) == 0


def reader(broker: BrokerProcess) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "enable.auto.commit": False,
        }
    )


def commit(broker: BrokerProcess, offset: int) -> None:
    consumer = reader(broker)
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()


def records_and_offset(broker: BrokerProcess) -> tuple[list[bytes], int]:
    """All values of the topic, and what the group has committed."""
    consumer = reader(broker)
    partition = TopicPartition(TOPIC, 0, 0)
    (committed,) = consumer.committed([partition], SECONDS)
    _, end = consumer.get_watermark_offsets(partition, SECONDS)
    consumer.assign([partition])
    values = [message.value() for message in consumer.consume(end, SECONDS)]
    consumer.close()
    return values, committed.offset


def test_the_folder_of_a_stopped_broker_is_a_backup(tmp_path: Path) -> None:
    folder, backup = tmp_path / "data", tmp_path / "backup"
    with BrokerProcess(folder, settings=SETTINGS) as broker:
        write(broker, b"first", b"second")
        commit(broker, 1)
        broker.stop()
        shutil.copytree(folder, backup)
        broker.start()
        write(broker, b"after the backup")
        commit(broker, 3)
        broker.stop()
        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
        broker.start()
        assert records_and_offset(broker) == ([b"first", b"second"], 1)
        write(broker, b"third")
        assert records_and_offset(broker) == ([b"first", b"second", b"third"], 1)
        assert broker.log == ""


def test_a_snapshot_of_the_disk_is_a_backup_of_what_was_acknowledged(tmp_path: Path) -> None:
    folder, backup = tmp_path / "data", tmp_path / "backup"
    with BrokerProcess(folder, settings=SETTINGS) as broker:
        write(broker, b"first", b"second")
        commit(broker, 1)
        os.kill(broker.pid, signal.SIGSTOP)  # nothing changes while it is copied
        try:
            shutil.copytree(folder, backup)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        write(broker, b"after the backup")
    with BrokerProcess(backup, settings=SETTINGS) as restored:
        assert records_and_offset(restored) == ([b"first", b"second"], 1)
