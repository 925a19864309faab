"""`format("odradek-log")` beside what the broker serves of the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.log_tools.dump.log_dump import DumpOptions, dump_file
from odradek.spark_connector import register

from .conftest import START_MS, STEP_MS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SMALL_SEGMENTS = {
    "segment.ms": "400000",
    "index.interval.bytes": "500",
    "retention.ms": "-1",
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
PLAIN, TRANSACTED, EMPTY = "plain-logs", "transacted", "empty"
COUNT = 3000
DELETED_BELOW = 30


def fill(bootstrap: str) -> None:
    """A topic of every codec in several segments, cut at its beginning, and one of transactions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = [NewTopic(name, 2, 1, config=SMALL_SEGMENTS) for name in (PLAIN, TRANSACTED, EMPTY)]
    for future in admin.create_topics(made).values():
        future.result()
    for index, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "batch.num.messages": 20}
        )
        for number in range(index, COUNT, 5):
            producer.produce(
                PLAIN,
                key=None if number % 3 == 0 else f"key-{number}",
                value=None if number % 50 == 0 else f"value-{number}-" * 4,
                partition=number % 2,
                timestamp=START_MS + number * STEP_MS,
                headers=[("n", b"%d" % number)] if number % 7 == 0 else None,
            )
        assert producer.flush(90) == 0
    cut = TopicPartition(PLAIN, 1, DELETED_BELOW)
    for deleted in admin.delete_records([cut]).values():
        deleted.result()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(90)
    for end in ("commit", "abort", "commit", "abort"):
        producer.begin_transaction()
        for number in range(400):
            producer.produce(TRANSACTED, value=f"{end}-{number}" * 5, partition=number % 2)
        assert producer.flush(90) == 0
        getattr(producer, f"{end}_transaction")(90)


def in_order(frame: Any) -> list[Any]:
    names = ("topic", "partition", "offset")
    return sorted(frame.collect(), key=lambda row: tuple(row[name] for name in names))


def test_log_folders_hold_what_the_broker_serves(
    spark: Any, start_broker: Any, tmp_path: Path
) -> None:
    register(spark)
    folder = tmp_path / "data"
    broker = start_broker(data_dir=folder)
    fill(broker.bootstrap)

    def served(**options: str) -> list[Any]:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        return in_order(reader.options(**options).load())

    def logged(**options: str) -> list[Any]:
        return in_order(spark.read.format("odradek-log").options(**options).load(str(folder)))

    every = {"subscribe": f"{PLAIN},{TRANSACTED},{EMPTY}", "includeHeaders": "true"}
    committed = {"subscribe": TRANSACTED, "kafka.isolation.level": "read_committed"}
    window = {
        "subscribe": PLAIN,
        "startingOffsets": json.dumps({PLAIN: {"0": 700, "1": 200}}),
        "endingOffsets": json.dumps({PLAIN: {"0": 900, "1": 1203}}),
    }
    of_broker = served(**every)
    assert len(of_broker) == COUNT - DELETED_BELOW + 1600
    of_broker_committed = served(**committed)
    assert len(of_broker_committed) == 800
    of_broker_window = served(**window)
    assert len(of_broker_window) == 200 + 1003
    # A running broker writes down now and then where its logs begin.
    deleted = {(PLAIN, 1, offset) for offset in range(DELETED_BELOW)}
    running = [row for row in logged(**every) if (row[2], row[3], row[4]) not in deleted]
    assert running == of_broker

    broker.stop()
    small = {"maxBytesPerPartition": "4000"}
    assert logged(**every, **small) == of_broker
    assert logged(**committed, **small) == of_broker_committed
    assert logged(**window) == of_broker_window
    assert logged(**every, endingOffsets="highWatermark") == of_broker
    late = [row for row in of_broker if row["timestamp"] >= of_broker[1200]["timestamp"]]
    millis = int(spark_millis(spark, of_broker[1200]["timestamp"]))
    assert logged(**every, startingTimestamp=str(millis)) == late

    reader = spark.read.format("odradek-log").option("subscribe", every["subscribe"])
    batches = reader.option("table", "batches").load(str(folder)).collect()
    indexes = reader.option("table", "indexes").load(str(folder)).collect()
    assert told_batches(batches) == dumped(folder, "*.log", "batch", ("position", "base_offset"))
    names = ("topic", "partition", "segment", "offset", "position")
    found = {tuple(row[each] for each in names) for row in indexes if row["index"] == "offset"}
    entries = dumped(folder, "*.index", "offset_index", ("offset", "position"))
    # What lies wholly below the log's start is not read at all.
    segments = {(row["topic"], row["partition"], row["segment"]) for row in batches}
    assert found == {each for each in entries if each[:3] in segments}
    assert found
    assert len({row["segment"] for row in batches}) > 5


def spark_millis(spark: Any, moment: Any) -> int:
    """A collected time as what `startingTimestamp` takes."""
    row = spark.createDataFrame([(moment,)], "at TIMESTAMP").selectExpr("unix_millis(at)").first()
    return int(row[0])


Place = tuple[Any, ...]


def told_batches(rows: list[Any]) -> set[Place]:
    names = ("topic", "partition", "segment", "position", "baseOffset")
    found = [tuple(row[name] for name in names) for row in rows]
    assert len(set(found)) == len(found)
    return set(found)


def dumped(folder: Path, pattern: str, kind: str, names: tuple[str, ...]) -> set[Place]:
    """The same by `odradek log dump`, which Kafka's DumpLogSegments has been compared with."""
    found = set()
    for topic in (PLAIN, TRANSACTED, EMPTY):
        for partition in (0, 1):
            for path in (folder / f"{topic}-{partition}").glob(pattern):
                for entry in dump_file(str(path), DumpOptions()):
                    if entry.kind == kind:
                        place = (topic, partition, int(path.stem))
                        found.add((*place, *(entry.fields[name] for name in names)))
    starts = {(PLAIN, 1): DELETED_BELOW} if kind == "batch" else {}
    return {each for each in found if starts.get(each[:2], 0) <= reach(folder, each, kind)}


def reach(folder: Path, place: Place, kind: str) -> int:
    """The last offset of a batch; batches below the log's start are not in the table."""
    if kind != "batch":
        return 0
    path = folder / f"{place[0]}-{place[1]}" / f"{place[2]:020d}.log"
    entries = dump_file(str(path), DumpOptions())
    batch = next(each for each in entries if each.fields["position"] == place[3])
    return int(batch.fields["last_offset"])
