"""Files written by Apache Kafka 4.3.1: we read them, and write the same bytes.

`data/kafka-4.3.1/orders-0` is a partition of a real broker: 24 batches of an idempotent
producer (kafka-python's builder, every compression), appended one request each, with
`index.interval.bytes=150` and `segment.ms=5000`. Of the active segment only the log is
there, since Kafka keeps its indexes as ten megabytes of zeros.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from odradek.protocol.records import iter_batches, iter_records
from odradek.storage import LogConfig, TopicPartition, load_log

KAFKA_MADE = Path(__file__).parents[1] / "data" / "kafka-4.3.1" / "orders-0"
ORDERS = TopicPartition("orders", 0)
FIRST_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_ms=5000, index_interval_bytes=150)

COUNTS = [1 + number % 3 for number in range(24)]
VALUES = [
    b"value-%d-%d-" % (number, index) * 4
    for number, count in enumerate(COUNTS)
    for index in range(count)
]
"""What the producer sent, in order."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(KAFKA_MADE, tmp_path / "orders-0")


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_a_partition_of_kafka_is_read(folder: Path, read_all, clean_shutdown: bool) -> None:
    log = load_log(str(folder), ORDERS, CONFIG, clean_shutdown=clean_shutdown)
    records = read_all(log)
    assert [record.value for record in records] == VALUES
    assert [record.offset for record in records] == list(range(48))
    assert [segment.base_offset for segment in log.segments] == [0, 33]
    assert log.epochs.entries == [(0, 0)]
    assert len(log.topic_id or b"") == 16
    state = log.producers.get(77)
    assert (state.producer_epoch, state.last_sequence) == (3, 47)
    assert log.max_timestamp()[:2] == (FIRST_MS + 23 * 300, 45)
    assert log.offset_for_timestamp(FIRST_MS + 2200)[:2] == (FIRST_MS + 2200, 10)


def test_the_same_appends_make_the_same_files(tmp_path: Path) -> None:
    log = load_log(str(tmp_path / "ours"), ORDERS, CONFIG)
    for name in sorted(KAFKA_MADE.glob("*.log")):
        for batch in iter_batches(name.read_bytes()):
            end = batch.position + batch.size_in_bytes
            sent = bytearray(batch.buffer[batch.position : end])
            struct.pack_into(">q", sent, 0, 0)
            log.append_as_leader(sent, leader_epoch=0, now_ms=FIRST_MS)
            log.flush_appends()
    log.flush_to_disk()
    written = {path.name: path.read_bytes() for path in Path(log.directory).iterdir()}
    for path in KAFKA_MADE.iterdir():
        if path.name != "partition.metadata":
            assert written[path.name] == path.read_bytes(), path.name


def test_recovery_makes_kafkas_indexes(folder: Path) -> None:
    for path in folder.iterdir():
        if path.suffix in (".index", ".timeindex"):
            path.unlink()
    load_log(str(folder), ORDERS, CONFIG)
    for suffix in (".index", ".timeindex"):
        name = f"{0:020d}{suffix}"
        assert (folder / name).read_bytes() == (KAFKA_MADE / name).read_bytes()


def test_every_record_can_be_found_by_its_time(folder: Path) -> None:
    log = load_log(str(folder), ORDERS, CONFIG, clean_shutdown=True)
    seen = [
        (record.timestamp, record.offset)
        for path in sorted(KAFKA_MADE.glob("*.log"))
        for batch in iter_batches(path.read_bytes())
        for record in iter_records(batch)
    ]
    for timestamp, _ in seen:
        first = next(each for each in seen if each[0] >= timestamp)
        assert log.offset_for_timestamp(timestamp)[:2] == first
