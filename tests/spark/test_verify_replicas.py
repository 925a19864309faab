"""`verify-replicas` finds each difference that is planted between a cluster's data folders.

Every difference has a topic of its own, so that one run, which costs Spark the same whatever the
topics hold, finds them all. It is planted in the folder of broker 2.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.records import RecordBatch, build_batch, iter_batches, iter_records
from odradek.protocol.records.builder import write_crc
from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import (
    ReplicaDifference,
    ReplicaReport,
    VerifyReplicasSettings,
)
from odradek.spark_connector.pipelines.replicas.verify_replicas import verify_replicas
from odradek.storage.io.read_only_files import keep_brokers_out
from odradek.testing import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BATCHES, EACH = 10, 10
COUNT = BATCHES * EACH
START_MS = 1_370_088_000_000
SECONDS_MAX = 240

LEADER_EPOCH_AT, MAGIC_AT = 12, 16
Plant = Callable[[Path], None]


# --- What is planted ---------------------------------------------------------------------------


def log_file(folder: Path) -> Path:
    (path,) = folder.glob("*.log")
    return path


def batches_in(folder: Path) -> list[bytes]:
    data = log_file(folder).read_bytes()
    return [data[each.position : each.position + each.size_in_bytes] for each in iter_batches(data)]


def rewrite(folder: Path, batches: list[bytes]) -> None:
    log_file(folder).write_bytes(b"".join(batches))


def rebuilt(data: bytes, change: Callable[[list[Any]], list[Any]]) -> bytes:
    """A batch with other records, and the header that belongs to them."""
    batch = RecordBatch(data)
    records = [
        (
            None if each.key is None else bytes(each.key),
            None if each.value is None else bytes(each.value),
            each.timestamp,
            [(name, value) for name, value in each.headers],
        )
        for each in iter_records(batch)
    ]
    return bytes(
        build_batch(
            change(records),
            base_offset=batch.base_offset,
            partition_leader_epoch=batch.partition_leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
    )


def in_batch(number: int, change: Callable[[bytes], bytes]) -> Plant:
    def plant(folder: Path) -> None:
        batches = batches_in(folder)
        batches[number] = change(batches[number])
        rewrite(folder, batches)

    return plant


def with_records(number: int, change: Callable[[list[Any]], list[Any]]) -> Plant:
    return in_batch(number, lambda data: rebuilt(data, change))


def with_byte(data: bytes, *, is_checksum_right: bool) -> bytes:
    """The last byte of the last value is another; a count of headers follows it."""
    changed = bytearray(data)
    changed[-2] ^= 0x01
    if is_checksum_right:
        write_crc(changed)
    return bytes(changed)


def at_base_offset(data: bytes, offset: int) -> bytes:
    return struct.pack(">q", offset) + data[8:]


def of_leader_epoch(data: bytes, epoch: int) -> bytes:
    return data[:LEADER_EPOCH_AT] + struct.pack(">i", epoch) + data[LEADER_EPOCH_AT + 4 :]


def swapped(records: list[Any]) -> list[Any]:
    records[3], records[4] = records[4], records[3]
    return records


def compacted(folder: Path) -> None:
    with_records(5, lambda records: records[:-1])(folder)
    line = f"{folder.name.rpartition('-')[0]} 0 70"
    (folder.parent / "cleaner-offset-checkpoint").write_text(f"0\n1\n{line}\n")


def of_another_topic(folder: Path) -> None:
    text = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw"
    (folder / "partition.metadata").write_text(text)


def lost_file(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def more_above_the_high_watermark(folder: Path) -> None:
    more = build_batch([(b"key", b"more", START_MS, [])], base_offset=COUNT)
    rewrite(folder, [*batches_in(folder), bytes(more)])


PLANTED: dict[str, Plant] = {
    "same": lambda folder: None,
    "more-above": more_above_the_high_watermark,
    "compacted": compacted,
    "lost-record": with_records(5, lambda records: records[:-1]),
    "lost-batch": lambda folder: rewrite(folder, batches_in(folder)[:4] + batches_in(folder)[5:]),
    "changed-byte": in_batch(6, lambda data: with_byte(data, is_checksum_right=True)),
    "rotten-byte": in_batch(6, lambda data: with_byte(data, is_checksum_right=False)),
    "other-offset": in_batch(9, lambda data: at_base_offset(data, COUNT - EACH + 2)),
    "other-epoch": in_batch(2, lambda data: of_leader_epoch(data, 7)),
    "swapped": with_records(7, swapped),
    "truncated": lambda folder: rewrite(folder, batches_in(folder)[:8]),
    "no-batch": in_batch(5, lambda data: data[:MAGIC_AT] + b"\x07" + data[MAGIC_AT + 1 :]),
    "other-topic": of_another_topic,
    "lost-replica": lost_file,
}
TRANSACTED = "transacted"


# --- The cluster -------------------------------------------------------------------------------


def fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"retention.ms": "-1", "min.insync.replicas": "3"}
    names = [*PLANTED, TRANSACTED]
    for made in admin.create_topics([NewTopic(n, 1, 3, config=config) for n in names]).values():
        made.result(90)
    # Each batch is sent by `flush`, and not by a clock that a busy machine might let run out; and
    # one that has to be sent again is in the log once.
    settings = {"linger.ms": 60_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for batch in range(BATCHES):
        for topic in PLANTED:
            for number in range(batch * EACH, (batch + 1) * EACH):
                value = b"value-%d" % number if number % 9 else None
                producer.produce(topic, value, b"key-%d" % number, timestamp=START_MS + number)
        assert producer.flush(120) == 0
    transactional = {"bootstrap.servers": bootstrap, "transactional.id": TRANSACTED}
    producer = Producer(transactional)
    producer.init_transactions(60)
    for end in ("commit", "abort"):
        producer.begin_transaction()
        for number in range(EACH):
            producer.produce(TRANSACTED, b"value-%d" % number)
        assert producer.flush(60) == 0
        getattr(producer, f"{end}_transaction")(60)
    # The end of a transaction is answered before its markers are written, and a coordinator that
    # takes over from one that stops meanwhile writes them again. The next producer of the same id
    # is let in only when the transaction is over.
    Producer(transactional).init_transactions(60)


@pytest.fixture(scope="module")
def folders() -> Iterator[list[Path]]:
    """The data folders of three brokers that are stopped; the second one was tampered with."""
    settings = {"replica.fetch.wait.max.ms": "100"}
    with Cluster(3, settings) as cluster:
        fill(cluster.bootstrap_servers)
        for broker in cluster.brokers:
            broker.stop()
        found = [broker.folder / "data" for broker in cluster.brokers]
        for topic, plant in PLANTED.items():
            assert len(batches_in(found[1] / f"{topic}-0")) == BATCHES
            plant(found[1] / f"{topic}-0")
        yield found


@pytest.fixture(scope="module")
def report(spark: Any, folders: list[Path]) -> ReplicaReport:
    return verify_replicas(spark, settings_for(folders, replicas=3))


def settings_for(folders: list[Path], **more: Any) -> VerifyReplicasSettings:
    names = (*PLANTED, TRANSACTED)
    return VerifyReplicasSettings(tuple(map(str, folders)), names, **more)


def found_in(report: ReplicaReport, topic: str) -> list[ReplicaDifference]:
    return [each for each in report.differences if each.topic == topic]


def kinds_in(report: ReplicaReport, topic: str) -> dict[str, int]:
    return {each.kind: each.occurrences for each in found_in(report, topic)}


# --- What is found -------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["same", "more-above", "compacted", TRANSACTED])
def test_replicas_that_are_the_same_are_found_so(report: ReplicaReport, topic: str) -> None:
    assert found_in(report, topic) == []
    (compared,) = [each for each in report.partitions if each.topic == topic]
    assert len(compared.folders) == 3
    # Two transactions of ten records and a marker each.
    assert compared.until == (2 * (EACH + 1) if topic == TRANSACTED else COUNT)


@pytest.mark.parametrize(
    ("topic", "kinds"),
    [
        ("lost-record", {"missing": 1}),
        ("lost-batch", {"missing": EACH}),
        ("changed-byte", {"different": 1}),
        ("rotten-byte", {"damaged": 1, "different": 1}),
        ("other-offset", {"missing": 2, "different": EACH - 2}),
        ("other-epoch", {"different": EACH}),
        ("swapped", {"different": 2}),
        ("truncated", {"short": 1}),
        ("no-batch", {"short": 1}),
        ("other-topic", {"other topic": 1}),
        ("lost-replica", {"absent": 1}),
    ],
)
def test_each_planted_difference_is_found(
    report: ReplicaReport, topic: str, kinds: dict[str, int]
) -> None:
    assert kinds_in(report, topic) == kinds


def test_a_difference_names_offset_field_and_folders(
    report: ReplicaReport, folders: list[Path]
) -> None:
    two = str(folders[1])
    one, three = sorted([str(folders[0]), str(folders[2])])
    (lost,) = found_in(report, "lost-record")
    assert lost.samples == (f"offset 59 is in {one}, {three}, but not in {two}",)
    (changed,) = found_in(report, "changed-byte")
    assert changed.samples == (f"offset 69 has another value: {one} and {three} unlike {two}",)
    (epoch,) = found_in(report, "other-epoch")
    assert epoch.samples[0].startswith("offset 20 has another leaderEpoch: ")
    (short,) = found_in(report, "truncated")
    assert short.samples == (f"that in {two} ends at 80, and the high watermark is 100",)


def test_a_deep_comparison_finds_the_same(
    spark: Any, report: ReplicaReport, folders: list[Path]
) -> None:
    topics = ("same", "lost-record", "swapped")
    deep = verify_replicas(spark, settings_for(folders, deep=True)._replace(topics=topics))
    assert deep.differences == (*found_in(report, "lost-record"), *found_in(report, "swapped"))


def test_the_folders_of_a_running_broker_are_refused(spark: Any, folders: list[Path]) -> None:
    with ExitStack() as stack:
        lock = keep_brokers_out(str(folders[2] / ".lock"), exclusive=True)
        stack.callback(lock.release)
        with pytest.raises(SparkConnectorError, match="a broker is running on"):
            verify_replicas(spark, settings_for(folders))


def test_the_command_ends_with_what_it_found(folders: list[Path]) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "odradek", "spark", "verify-replicas", *arguments]
        command += ["--master", "local[1]"]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)

    done = run(*map(str, folders), "--topic", "swapped", "--topic", "same", "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert [(each["topic"], each["kind"]) for each in told["differences"]] == [
        ("swapped", "different")
    ]
    assert {each["topic"] for each in told["partitions"]} == {"swapped", "same"}
    nowhere = run(str(folders[0] / "nowhere"))
    assert nowhere.returncode == 2
    assert "is no folder" in nowhere.stderr
