"""Kafka's own tools, and a Kafka that is given our files, read what we wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from support.data_folders import (
    NOW_MS,
    write_data_folder,
)
from support.dump_log_segments import (
    Entries,
    decoded_offsets_of_kafka,
    decoded_offsets_of_odradek,
    dump_log_segments,
    entries_of_odradek,
)
from support.java_tools import JavaTools
from support.kafka_process import KafkaProcess
from support.log_damage import flip

from odradek.cli.main import main
from odradek.protocol.records import Record, iter_batches, iter_records
from odradek.storage.checkpoint.partition_metadata import read_topic_id, write_topic_id
from odradek.storage.io.files import REAL_FILES
from odradek.testing.process.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPICS = "org.apache.kafka.tools.TopicCommand"
DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
INDEXES = (".index", ".timeindex")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that our storage wrote: compressions, rolls, transactions, compaction."""
    path = tmp_path_factory.mktemp("ours") / "data"
    write_data_folder(path, compacted=True)
    return path


@pytest.fixture(scope="module")
def of_our_broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of a whole broker of ours, that clients wrote to and committed offsets at."""
    path = tmp_path_factory.mktemp("broker") / "data"
    settings = {
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.roll.ms": "60000",
        "log.retention.ms": "-1",  # timestamps are old
        "log.index.interval.bytes": "500",
    }
    with BrokerProcess(path, settings=settings) as broker:
        bootstrap = {"bootstrap.servers": broker.bootstrap}
        for number, codec in enumerate(CODECS):
            producer = Producer(
                {**bootstrap, "compression.type": codec, "enable.idempotence": number % 2 == 0}
            )
            for index in range(200):
                producer.produce(
                    "produced",
                    key=f"key-{index}",
                    value=f"value-{codec}-{index}" * 3,
                    timestamp=NOW_MS + 45_000 * number + index,
                    headers=[("codec", codec)],
                )
            assert producer.flush(120) == 0
        consumer = Consumer({**bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["produced"])
        count = 0
        while count < 1000:
            count += sum(message.error() is None for message in consumer.consume(1000, 10))
        consumer.commit(asynchronous=False)
        consumer.close()
    return path


def files_of(root: Path, *suffixes: str) -> list[Path]:
    found = (path for path in root.glob("*-[0-9]*/*") if path.stem.isdigit())
    return sorted(path for path in found if path.suffix in suffixes)


def dumped_by_us(capsys: Capsys, paths: list[Path], *options: str) -> list[str]:
    arguments = ["log", "dump", "--records", "--json", *options, *map(str, paths)]
    assert main(arguments) == 0
    return capsys.readouterr().out.splitlines()


def kinds_in(entries: Entries) -> set[str]:
    return {entry[0] for each in entries.values() for entry in each}


def batches_in(entries: Entries) -> list[tuple[Any, ...]]:
    return [entry for each in entries.values() for entry in each if entry[0] == "batch"]


def test_kafkas_dump_and_ours_agree_entry_by_entry(
    ours: Path, tools: JavaTools, capsys: Capsys
) -> None:
    paths = files_of(ours, *DUMPED)
    dumped = dump_log_segments(tools, paths, "--deep-iteration", "--print-data-log")
    theirs = dumped.entries()
    assert theirs == entries_of_odradek(dumped_by_us(capsys, paths))
    assert kinds_in(theirs) == {
        "batch",
        "record",
        "offset_index",
        "time_index",
        "transaction_index",
        "producer",
    }
    batches = batches_in(theirs)
    assert {batch[-3] for batch in batches} == set(CODECS)
    assert all(batch[-1] for batch in batches), "Kafka finds a checksum that is wrong"
    assert any(batch[3] == 0 for batch in batches), "compaction has left no empty batch"


def test_kafkas_dump_shows_a_flipped_bit(ours: Path, tools: JavaTools, tmp_path: Path) -> None:
    """The tool would tell: without this the test above could not fail."""
    copy = shutil.copytree(ours, tmp_path / "data")
    log, index = files_of(copy, ".log")[1], files_of(copy, ".index")[1]
    flip(log, log.stat().st_size - 1)
    flip(index, 3)
    dumped = dump_log_segments(tools, [log])
    assert not all(batch[-1] for batch in batches_in(dumped.entries()))
    assert str(index) in dump_log_segments(tools, [index], "--verify-index-only").complaints


def test_kafkas_checks_find_our_indexes_sound(ours: Path, tools: JavaTools, capsys: Capsys) -> None:
    paths = files_of(ours, *INDEXES)
    checked = dump_log_segments(tools, paths, "--index-sanity-check").output.splitlines()
    assert {line for line in checked if not line.startswith("Dumping")} == {
        f"{path} passed sanity check." for path in paths
    }
    complaints = dump_log_segments(tools, paths, "--verify-index-only").complaints
    # An emptied batch keeps its timestamp, which the tool looks for in its records.
    emptied = {
        f"  Index timestamp: {batch['max_timestamp']}, log timestamp: -1"
        for batch in map(json.loads, dumped_by_us(capsys, files_of(ours, ".log")))
        if batch["type"] == "batch" and batch["records"] == 0
    }
    of_entries = {line for line in complaints.splitlines() if line.startswith("  ")}
    assert of_entries <= emptied


def test_kafka_reads_what_clients_wrote_to_our_broker(
    of_our_broker: Path, tools: JavaTools, capsys: Capsys
) -> None:
    paths = [path for path in files_of(of_our_broker, *DUMPED) if "produced" in str(path)]
    dumped = dump_log_segments(tools, paths, "--deep-iteration", "--print-data-log")
    theirs = dumped.entries()
    assert theirs == entries_of_odradek(dumped_by_us(capsys, paths))
    assert {batch[-3] for batch in batches_in(theirs)} == set(CODECS)
    assert sum(path.suffix == ".log" for path in paths) > 2
    values = [entry[8] for each in theirs.values() for entry in each if entry[0] == "record"]
    assert sorted(values) == sorted(
        f"value-{codec}-{index}" * 3 for codec in CODECS for index in range(200)
    )
    indexes = [path for path in paths if path.suffix in INDEXES]
    assert dump_log_segments(tools, indexes, "--verify-index-only").complaints == ""


def test_offsets_that_groups_commit_are_decoded_by_both(
    of_our_broker: Path, tools: JavaTools, capsys: Capsys
) -> None:
    paths = [path for path in files_of(of_our_broker, ".log") if "__consumer" in str(path)]
    dumped = dump_log_segments(tools, paths, "--offsets-decoder")
    theirs = decoded_offsets_of_kafka(dumped.output)
    assert theirs == decoded_offsets_of_odradek(dumped_by_us(capsys, paths, "--offsets"))
    committed = [
        value["offset"] for _, key, _, value in theirs if value and key.get("topic") == "produced"
    ]
    assert committed[-1] == 1000


# --- Our files in a Kafka -------------------------------------------------------------------


def test_a_kafka_that_is_given_our_partition_serves_every_record(
    kafka: KafkaProcess, java: Any, ours: Path
) -> None:
    if not kafka.is_running:
        kafka.start()
    bootstrap = ("--bootstrap-server", kafka.bootstrap)
    # What is old would be deleted half a minute after Kafka's start.
    created = ("--create", "--topic", "orders", "--partitions", "1", "--config", "retention.ms=-1")
    java(TOPICS, *bootstrap, *created)
    assert kafka.stop() == 0
    assert kafka.data_dir is not None
    place = kafka.data_dir / "orders-0"
    topic_id = read_topic_id(REAL_FILES, str(place))
    assert topic_id is not None
    shutil.rmtree(place)
    shutil.copytree(ours / "orders-0", place)
    write_topic_id(REAL_FILES, str(place), topic_id)
    kafka.start()

    everything, committed = records_of(place)
    assert 0 < len(committed) < len(everything)
    for isolation, expected in (("read_uncommitted", everything), ("read_committed", committed)):
        printed = java(
            CONSUMER,
            *("--bootstrap-server", kafka.bootstrap),
            *("--topic", "orders", "--from-beginning", "--max-messages", str(len(expected))),
            *("--isolation-level", isolation, "--timeout-ms", "120000"),
            *("--formatter-property", "print.offset=true"),
            *("--formatter-property", "print.key=true"),
            *("--formatter-property", "print.timestamp=true"),
        )
        assert printed.splitlines() == [
            f"CreateTime:{record.timestamp}\tOffset:{record.offset}\t"
            f"{(record.key or b'').decode()}\t{(record.value or b'').decode()}"
            for record in expected
        ]


def test_a_running_kafka_keeps_verification_out_unless_it_is_forced(
    kafka: KafkaProcess, capsys: Capsys
) -> None:
    if not kafka.is_running:
        kafka.start()
    assert main(["log", "verify", str(kafka.data_dir)]) == 2
    assert "a broker is running on" in capsys.readouterr().err
    assert main(["log", "verify", "--live", str(kafka.data_dir)]) == 0


def records_of(folder: Path) -> tuple[list[Record], list[Record]]:
    """All records of producers in a partition, and those whose transaction was committed.

    Read from the batches alone: a marker tells what became of its producer's records before it.
    """
    everything: list[Record] = []
    committed: list[Record] = []
    waiting: dict[int, list[Record]] = {}
    for path in sorted(folder.glob("*.log")):
        for batch in iter_batches(path.read_bytes()):
            records = list(iter_records(batch))
            if batch.is_control:
                ended = waiting.pop(batch.producer_id, [])
                if records[0].key == b"\0\0\0\1":
                    committed += ended
                continue
            everything += records
            if batch.is_transactional:
                waiting.setdefault(batch.producer_id, []).extend(records)
            else:
                committed += records
    return everything, sorted(committed, key=lambda record: record.offset)
