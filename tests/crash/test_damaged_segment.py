"""A closed segment was damaged while the broker was down: what is whole is served, the rest told.

The fetch is a frame of our own, so that nothing between the broker's answer and the test looks
at the records; the consumer is kafka-python, which checks their checksums.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import CorruptRecordError
from support.raw_connection import RawConnection

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

CORRUPT_MESSAGE = 2
BATCHES = 30
VALUE = bytes(100_000)
HEADER_BYTES = 61
FETCH, FETCH_VERSION = 1, 4
FETCH_BYTES_MAX = 10_000_000
MAGIC_AT, CRC_AT, ATTRIBUTES_AT, PAYLOAD_AT = 16, 17, 21, 200


class Fetched(NamedTuple):
    """A partition's part of a fetch response."""

    error_code: int
    records: bytes


def fetch(connection: RawConnection, topic: str, offset: int, max_bytes: int) -> Fetched:
    """Fetch version 4, of one partition."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    header = struct.pack(">hhih", FETCH, FETCH_VERSION, 1, -1)
    body = struct.pack(">iiiibi", -1, 0, 1, FETCH_BYTES_MAX, 0, 1) + name
    connection.send_frame(header + body + struct.pack(">iiqi", 1, 0, offset, max_bytes))
    answer = connection.receive_frame()
    partition = 4 + 4 + 4 + len(name) + 4
    _, error_code, _, _, aborted = struct.unpack_from(">ihqqi", answer, partition)
    assert aborted <= 0
    records = answer[partition + 26 + 4 :]
    return Fetched(error_code, records)


def write_batches(broker: BrokerProcess, topic: str) -> None:
    """Batches of one record each, three segments of them."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    configs = {"segment.bytes": str(1024 * 1024)}
    requested = {"num_partitions": 1, "replication_factor": 1, "configs": configs}
    admin.create_topics({topic: requested}, wait_for_metadata=True)
    admin.close()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)
    for _ in range(BATCHES):
        producer.send(topic, VALUE, partition=0).get(120)
    producer.close()


def batch_positions(data: bytes) -> list[tuple[int, int]]:
    """Base offset and position of each batch."""
    found = []
    position = 0
    while position < len(data):
        base_offset, length = struct.unpack_from(">qi", data, position)
        found.append((base_offset, position))
        position += 12 + length
    return found


@pytest.fixture
def damaged(start_broker, topic: str):
    """Start over with one byte of a batch in the first, closed, segment wrong."""

    def damage(
        byte: int, *, is_killed: bool = False
    ) -> tuple[BrokerProcess, list[tuple[int, int]], int]:
        broker = start_broker()
        write_batches(broker, topic)
        if is_killed:
            checkpoint = Path(broker.data_dir) / "recovery-point-offset-checkpoint"
            wait_until(lambda: checkpoint.exists() and topic in checkpoint.read_text())
            broker.kill()
        else:
            assert broker.stop() == 0
        segments = sorted(Path(broker.data_dir).glob(f"{topic}-0/*.log"))
        assert len(segments) > 2
        data = bytearray(segments[0].read_bytes())
        batches = batch_positions(data)
        index = len(batches) // 2
        data[batches[index][1] + byte] ^= 0x04
        segments[0].write_bytes(data)
        broker.start()
        return broker, batches, index

    return damage


@pytest.mark.parametrize("byte", [MAGIC_AT, CRC_AT, ATTRIBUTES_AT, 8, 6, 23])
def test_a_damaged_header_is_read_up_to_and_answered_corrupt(damaged, topic, byte: int) -> None:
    broker, batches, index = damaged(byte)
    batch_bytes = batches[1][1] - batches[0][1]
    with RawConnection(broker.port) as connection:
        for offset, _ in batches[:index]:
            whole = fetch(connection, topic, offset, batch_bytes)
            assert whole.error_code == 0
            assert struct.unpack_from(">q", whole.records)[0] == offset
            assert len(whole.records) == batch_bytes
        refused = fetch(connection, topic, batches[index][0], FETCH_BYTES_MAX)
        assert refused == Fetched(CORRUPT_MESSAGE, b"")
        behind = fetch(connection, topic, BATCHES - 1, FETCH_BYTES_MAX)
        assert behind.error_code == 0
        assert struct.unpack_from(">q", behind.records)[0] == BATCHES - 1
    assert broker.is_running


def test_a_kill_costs_nothing_behind_a_damaged_byte_in_an_old_segment(damaged, topic) -> None:
    broker, batches, index = damaged(PAYLOAD_AT, is_killed=True)
    with RawConnection(broker.port) as connection:
        refused = fetch(connection, topic, batches[index][0], FETCH_BYTES_MAX)
        assert refused == Fetched(CORRUPT_MESSAGE, b"")
        for offset in (batches[index - 1][0], batches[index + 1][0], BATCHES - 1):
            whole = fetch(connection, topic, offset, FETCH_BYTES_MAX)
            assert whole.error_code == 0
            assert struct.unpack_from(">q", whole.records)[0] == offset
    assert list(Path(broker.data_dir).glob("*/*.cut")) == []


@pytest.mark.clients
def test_a_damaged_payload_is_caught_by_the_clients_checksum(damaged, topic) -> None:
    broker, batches, index = damaged(PAYLOAD_AT)
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, max_poll_records=1)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    received: list[int] = []

    def receive_all() -> None:
        while len(received) < BATCHES:
            for records in consumer.poll(timeout_ms=60_000).values():
                received.extend(record.offset for record in records)

    with pytest.raises(CorruptRecordError):
        receive_all()
    consumer.close()
    assert received == [offset for offset, _ in batches[:index]]
    assert broker.is_running
