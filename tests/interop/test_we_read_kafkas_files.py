"""Files that a real Kafka wrote: found sound, and read record for record."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from support.dump_log_segments import (
    decoded_offsets_of_kafka,
    decoded_offsets_of_odradek,
    dump_log_segments,
    entries_of_odradek,
)
from support.java_tools import JavaTools
from support.kafka_process import KafkaProcess, wait_for_text
from support.log_damage import flip

from odradek import storage
from odradek.cli.main import main
from odradek.protocol.records import RecordBatch, iter_batches, iter_records
from odradek.runtime.clock import ManualClock
from odradek.storage import Log, LogManager
from odradek.testing.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

LEFT_OUT = "orders-0"
NOW_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Its timestamps are old: half a minute after its start a Kafka would delete what has them.
SETTINGS = {"segment.ms": "60000", "index.interval.bytes": "300", "retention.ms": "-1"}
TOPICS = {
    "mixed": SETTINGS,
    "transacted": SETTINGS,
    "compacted": {
        **SETTINGS,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    },
}
CONSUMER_OFFSETS = "__consumer_offsets"
SECONDS_MAX = 120
DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
INDEXES = (".index", ".timeindex")

Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Offset, timestamp, key, value and headers of a record."""


class OfKafka(NamedTuple):
    """What a Kafka left behind, and what its consumers were given before."""

    closed: Path
    """Its log.dirs after a proper end."""
    killed: Path
    """The same after SIGKILL."""
    consumed: dict[tuple[str, str], list[Row]]
    """By topic and isolation level."""


@pytest.fixture(scope="module")
def of_kafka(kafka: KafkaProcess, tmp_path_factory: pytest.TempPathFactory) -> OfKafka:
    folder = tmp_path_factory.mktemp("of-kafka")
    assert kafka.data_dir is not None
    if not kafka.is_running:
        kafka.start()
    bootstrap = {"bootstrap.servers": kafka.bootstrap}
    admin = AdminClient(bootstrap)  # its answers come only while it is there
    made = admin.create_topics(
        [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
    )
    for future in made.values():
        future.result(SECONDS_MAX)
    produce_mixed(bootstrap)
    produce_transacted(bootstrap)
    produce_compacted(bootstrap)
    commit_offsets(bootstrap)
    wait_until_cleaned(kafka.data_dir)
    wait_until_over(admin)
    kafka.kill()
    without_ours = shutil.ignore_patterns(LEFT_OUT)
    shutil.copytree(kafka.data_dir, folder / "killed", ignore=without_ours)
    kafka.start()
    consumed = {
        (topic, isolation): list(consume(bootstrap, topic, isolation))
        for topic in TOPICS
        for isolation in ("read_uncommitted", "read_committed")
    }
    assert kafka.stop(signal.SIGTERM) == 0
    shutil.copytree(kafka.data_dir, folder / "closed", ignore=without_ours)
    return OfKafka(folder / "closed", folder / "killed", consumed)


def wait_until_cleaned(data_dir: Path) -> None:
    """Wait until all that may be cleaned is: a Kafka that starts anew leaves the log as it is."""
    active = max(int(path.stem) for path in (data_dir / "compacted-0").glob("*.log"))
    wait_for_text(data_dir / "cleaner-offset-checkpoint", f"compacted 0 {active}\n", SECONDS_MAX)


def wait_until_over(admin: AdminClient) -> None:
    """Wait until the last transactions have their markers, which come after the answer."""
    place = TopicPartition("transacted", 0)

    def end_for(isolation: IsolationLevel) -> int:
        requested = admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=isolation)
        return int(requested[place].result(SECONDS_MAX).offset)

    wait_until(
        lambda: end_for(IsolationLevel.READ_COMMITTED) == end_for(IsolationLevel.READ_UNCOMMITTED),
        SECONDS_MAX,
        "a transaction is not over",
    )


def produce_mixed(bootstrap: dict[str, Any]) -> None:
    """Every codec, producers with and without ids, headers, nulls, and time for rolls."""
    for number, codec in enumerate(CODECS):
        producer = Producer(
            {**bootstrap, "compression.type": codec, "enable.idempotence": number % 2 == 0}
        )
        for index in range(300):
            producer.produce(
                "mixed",
                key=f"key-{index}" if index % 7 else None,
                value=f"value-{codec}-{index} " * 4 if index % 11 else None,
                timestamp=NOW_MS + 45_000 * number + index,
                headers=[("codec", codec.encode()), ("null", None)] if index % 3 == 0 else None,
            )
            if index % 50 == 49:
                assert producer.flush(SECONDS_MAX) == 0


def produce_transacted(bootstrap: dict[str, Any]) -> None:
    """Two transactional producers whose transactions overlap, and one that has none."""
    producers = [
        Producer({**bootstrap, "transactional.id": f"id-{number}", "compression.type": codec})
        for number, codec in enumerate(("none", "lz4"))
    ]
    plain = Producer(bootstrap)
    for producer in producers:
        producer.init_transactions(SECONDS_MAX)
    for turn in range(6):
        timestamp = NOW_MS + 30_000 * turn
        for number, producer in enumerate(producers):
            producer.begin_transaction()
            for index in range(5):
                value = f"turn-{turn}-{number}-{index}"
                producer.produce("transacted", key="k", value=value, timestamp=timestamp + index)
            assert producer.flush(SECONDS_MAX) == 0
            plain.produce("transacted", value=f"plain-{turn}-{number}", timestamp=timestamp)
            assert plain.flush(SECONDS_MAX) == 0
        for number, producer in enumerate(producers):
            if (turn + number) % 3 == 0:
                producer.commit_transaction(SECONDS_MAX)
            else:
                producer.abort_transaction(SECONDS_MAX)


def produce_compacted(bootstrap: dict[str, Any]) -> None:
    """Keys that are written again and again, and more than one buffer of the cleaner's."""
    producer = Producer({**bootstrap, "compression.type": "none"})
    for turn in range(4):
        for index in range(900):
            key = f"key-{index % 10}" if index % 3 else f"key-{turn}-{index}"
            producer.produce(
                "compacted",
                key=key,
                value=f"value-{turn}-{index}".ljust(900, "."),
                timestamp=NOW_MS + 70_000 * turn + index,
            )
            if index % 30 == 29:
                assert producer.flush(SECONDS_MAX) == 0


def commit_offsets(bootstrap: dict[str, Any]) -> None:
    consumer = Consumer({**bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["mixed"])
    count = 0
    while count < 1500:
        count += sum(message.error() is None for message in consumer.consume(500, 10))
    consumer.commit(asynchronous=False)
    consumer.close()


def consume(bootstrap: dict[str, Any], topic: str, isolation: str) -> Iterator[Row]:
    """Every record that a consumer is given."""
    consumer = Consumer(
        {
            **bootstrap,
            "group.id": "none",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        while True:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None, f"{topic} has no end"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return
            headers = tuple((name, value) for name, value in message.headers() or ())
            yield message.offset(), message.timestamp()[1], message.key(), message.value(), headers
    finally:
        consumer.close()


# --- Verified -------------------------------------------------------------------------------


def test_what_kafka_closed_is_found_sound(
    of_kafka: OfKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["log", "verify", "--deep", str(of_kafka.closed)])
    # Kafka's checkpoints name the partition of ours that was left out of the copy.
    reported = [line for line in capsys.readouterr().out.splitlines() if LEFT_OUT not in line]
    assert (code, reported) == (0, [])


def test_what_a_kill_left_is_no_damage(
    of_kafka: OfKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["log", "verify", "--deep", str(of_kafka.killed)])
    reported = capsys.readouterr().out.splitlines()
    assert (code, {line.partition(":")[0] for line in reported}) == (0, {"note"})
    assert ".kafka_cleanshutdown" in reported[0]


def test_a_flipped_bit_in_kafkas_files_is_found(of_kafka: OfKafka, tmp_path: Path) -> None:
    """Without this the tests above could not fail."""
    for suffix in DUMPED:
        copy = shutil.copytree(of_kafka.closed, tmp_path / suffix[1:])
        path = max((copy / "transacted-0").glob(f"*{suffix}"), key=lambda path: path.stat().st_size)
        flip(path, path.stat().st_size - 3)
        assert main(["log", "verify", str(copy)]) == 1, suffix


# --- Read -----------------------------------------------------------------------------------


@pytest.fixture(params=["closed", "killed"])
def manager(of_kafka: OfKafka, tmp_path: Path, request: Any) -> Iterator[LogManager]:
    """Our log manager on a copy of what Kafka left."""
    source: Path = getattr(of_kafka, request.param)
    copy = shutil.copytree(source, tmp_path / "data")
    manager = LogManager([str(copy)], clock=ManualClock(NOW_MS))
    manager.load_logs()
    yield manager
    manager.abandon()


def batches_of(log: Log) -> Iterator[RecordBatch]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        for batch in iter_batches(log.read(offset, 1 << 16).records.read()):
            yield batch
            offset = batch.next_offset


def rows_of(log: Log, *, committed: bool) -> Iterator[Row]:
    """What a consumer makes of the log's batches, and of its list of aborted transactions."""
    waiting = sorted(
        log.aborted_transactions(log.log_start_offset, log.log_end_offset) if committed else [],
        key=lambda aborted: aborted.first_offset,
        reverse=True,
    )
    aborting: set[int] = set()
    for batch in batches_of(log):
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            aborting.add(waiting.pop().producer_id)
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            for record in iter_records(batch):
                yield (
                    record.offset,
                    record.timestamp,
                    record.key,
                    record.value,
                    tuple(record.headers),
                )


@pytest.mark.parametrize("topic", list(TOPICS))
def test_every_record_is_read_as_kafkas_consumer_got_it(
    of_kafka: OfKafka, manager: LogManager, topic: str
) -> None:
    log = manager.logs[storage.TopicPartition(topic, 0)]
    expected = of_kafka.consumed[topic, "read_uncommitted"]
    assert len(expected) > 60
    assert list(rows_of(log, committed=False)) == expected
    assert len(log.segments) > 1


def test_aborted_transactions_are_left_out_as_kafkas_consumer_leaves_them_out(
    of_kafka: OfKafka, manager: LogManager
) -> None:
    log = manager.logs[storage.TopicPartition("transacted", 0)]
    expected = of_kafka.consumed["transacted", "read_committed"]
    everything = of_kafka.consumed["transacted", "read_uncommitted"]
    assert 0 < len(expected) < len(everything)
    assert list(rows_of(log, committed=True)) == expected


def test_compaction_left_what_it_should(of_kafka: OfKafka) -> None:
    """Kafka has cleaned: gaps and all are in what the tests above have read."""
    offsets = [row[0] for row in of_kafka.consumed["compacted", "read_uncommitted"]]
    assert len(offsets) < offsets[-1]


# --- Dumped ---------------------------------------------------------------------------------


def files_of(folder: Path, *suffixes: str) -> list[Path]:
    return sorted(
        path for path in folder.iterdir() if path.suffix in suffixes and path.stem.isdigit()
    )


@pytest.mark.parametrize("topic", [*TOPICS, CONSUMER_OFFSETS])
def test_kafkas_dump_and_ours_agree_on_kafkas_files(
    of_kafka: OfKafka,
    tools: JavaTools,
    capsys: pytest.CaptureFixture[str],
    topic: str,
) -> None:
    paths = files_of(of_kafka.closed / f"{topic}-0", *DUMPED)
    if topic == CONSUMER_OFFSETS:
        paths = [path for path in paths if path.suffix != ".log"]
    dumped = dump_log_segments(tools, paths, "--deep-iteration", "--print-data-log")
    assert main(["log", "dump", "--records", "--json", *map(str, paths)]) == 0
    assert dumped.entries() == entries_of_odradek(capsys.readouterr().out.splitlines())


def test_offsets_that_kafka_keeps_are_decoded_by_both(
    of_kafka: OfKafka, tools: JavaTools, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = files_of(of_kafka.closed / f"{CONSUMER_OFFSETS}-0", ".log")
    theirs = decoded_offsets_of_kafka(dump_log_segments(tools, paths, "--offsets-decoder").output)
    assert main(["log", "dump", "--offsets", "--json", *map(str, paths)]) == 0
    assert theirs == decoded_offsets_of_odradek(capsys.readouterr().out.splitlines())
    assert any(value and value.get("offset") == 1500 for _, _, _, value in theirs)
