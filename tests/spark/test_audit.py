"""`audit` finds each fault that is planted in a topic, and nothing in one without.

One audit looks at all the topics, since each costs Spark a dozen jobs whatever the topics hold.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from odradek.protocol.records import iter_batches
from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import (
    AuditFault,
    AuditReport,
    AuditSettings,
    PipelineProgress,
    TopicSource,
    audit_topics,
)
from odradek.spark_connector.pipelines.audit.html import as_html

from .conftest import START_MS, Topics

pytestmark = pytest.mark.spark

PARTITIONS = 2
COUNT = 60
PREFIX = f"audited-{os.getpid()}-"


class Sent(NamedTuple):
    """A record to produce."""

    number: int
    partition: int
    key: bytes | None = None
    value: bytes | None = b'{"a": 1}'
    timestamp_ms: int = START_MS


def clean_records() -> list[Sent]:
    """Numbers 0 to COUNT - 1, each key in one partition."""
    return [
        Sent(number, number % PARTITIONS, b"key-%d" % (number % 10), timestamp_ms=START_MS + number)
        for number in range(COUNT)
    ]


def changed(number: int, **fields: Any) -> list[Sent]:
    """Clean records, but for one."""
    records = clean_records()
    records[number] = records[number]._replace(**fields)
    return records


def swapped(one: int, other: int) -> list[Sent]:
    records = clean_records()
    records[one], records[other] = records[other], records[one]
    return records


def send(producer: Any, topic: str, record: Sent) -> None:
    headers = [("number", str(record.number).encode())]
    producer.produce(
        topic,
        record.value,
        record.key,
        record.partition,
        timestamp=record.timestamp_ms,
        headers=headers,
    )


def produce(bootstrap: str, topic: str, records: Iterable[Sent]) -> None:
    # One batch for each partition, sent by `flush`: no clock splits it on a busy machine.
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 60_000})
    for record in records:
        send(producer, topic, record)
    assert producer.flush(60) == 0


def produce_in_transactions(bootstrap: str, topic: str, each: int, abort_every: int) -> None:
    """Transactions of `each` records; before every so-manieth, its records are aborted once."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(90)
    records = clean_records()
    for place, first in enumerate(range(0, len(records), each)):
        for ends_well in (False, True) if place % abort_every == 0 else (True,):
            producer.begin_transaction()
            for record in records[first : first + each]:
                send(producer, topic, record)
            if ends_well:
                producer.commit_transaction(90)
            else:
                producer.flush(90)
                producer.abort_transaction(90)


PLANTED: dict[str, Callable[[], Iterable[Sent]]] = {
    "clean": lambda: [*clean_records(), Sent(COUNT, 0, None, None)],
    "lost": lambda: (record for record in clean_records() if record.number not in (17, 40, 41)),
    "duplicated": lambda: [*clean_records()[:40], clean_records()[20], *clean_records()[40:]],
    "swapped": lambda: swapped(30, 32),
    "moved": lambda: changed(12, partition=1),
    "future": lambda: changed(9, timestamp_ms=int(time.time() * 1000) + 600_000),
    "not-json": lambda: changed(8, value=b'{"a": 1'),
    "not-text": lambda: changed(11, value=b'{"a": "\xc3("}'),
}


@pytest.fixture(scope="module")
def bootstrap(broker: Any) -> str:
    """A broker with a topic for each thing that can be wrong."""
    for name, records in PLANTED.items():
        topic = Topics(broker.bootstrap, f"{PREFIX}{name}").create(partitions=PARTITIONS)
        produce(broker.bootstrap, topic, records())
    topic = Topics(broker.bootstrap, f"{PREFIX}transactions").create(partitions=PARTITIONS)
    produce_in_transactions(broker.bootstrap, topic, each=7, abort_every=3)
    Topics(broker.bootstrap, f"{PREFIX}empty").create(partitions=1)
    return str(broker.bootstrap)


@pytest.fixture(scope="module")
def progress() -> list[PipelineProgress]:
    return []


@pytest.fixture(scope="module")
def report(spark: Any, bootstrap: str, progress: list[PipelineProgress]) -> AuditReport:
    source = TopicSource(bootstrap, pattern=f"{PREFIX}.*")
    settings = AuditSettings(source, sequence="header:number", decode="json")
    return audit_topics(spark, settings, progress.append)


def faults_in(report: AuditReport, name: str) -> list[AuditFault]:
    return [fault for fault in report.faults if fault.topic == f"{PREFIX}{name}"]


def only_fault(report: AuditReport, name: str) -> AuditFault:
    (fault,) = faults_in(report, name)
    return fault


def audited(spark: Any, bootstrap: str, topic: str, **settings: Any) -> AuditReport:
    return audit_topics(spark, AuditSettings(TopicSource(bootstrap, (topic,)), **settings))


def test_nothing_is_wrong_with_a_clean_topic(report: AuditReport) -> None:
    assert faults_in(report, "clean") == []
    size = len(b"key-1") + len(b'{"a": 1}')
    first, second = [each for each in report.partitions if each.topic == f"{PREFIX}clean"]
    assert (first.records, second.records) == (31, 30)
    assert (first.missing_offsets, second.missing_offsets) == (0, 0)
    assert (first.keys, first.null_keys, first.tombstones) == (5, 1, 1)
    assert (second.keys, second.null_keys, second.tombstones) == (5, 0, 0)
    assert (second.sizes, second.bytes) == ((size, size, size, size), 30 * size)
    assert (second.first_ms, second.last_ms) == (START_MS + 1, START_MS + COUNT - 1)
    assert (first.backwards, first.backwards_ms_max) == (1, COUNT - 2)


def test_nothing_is_wrong_with_transactions_committed_and_aborted(report: AuditReport) -> None:
    assert faults_in(report, "transactions") == []
    parts = [each for each in report.partitions if each.topic == f"{PREFIX}transactions"]
    assert sum(each.records for each in parts) == COUNT
    # 9 committed and 3 aborted ones leave a marker in both partitions; those had 7 records each.
    assert sum(each.missing_offsets for each in parts) == 2 * 12 + 3 * 7
    assert all(each.explained_offsets == each.missing_offsets for each in parts)


def test_an_empty_partition_is_reported_as_one(report: AuditReport) -> None:
    (empty,) = [each for each in report.partitions if each.topic == f"{PREFIX}empty"]
    assert (empty.records, empty.end_offset, empty.first_ms) == (0, 0, None)
    assert faults_in(report, "empty") == []


def test_lost_records_are_found(report: AuditReport) -> None:
    fault = only_fault(report, "lost")
    assert (fault.kind, fault.occurrences) == ("lost", 3)
    assert fault.samples == ("number 17", "numbers 40 to 41")


def test_a_duplicate_is_found_and_is_no_swap(report: AuditReport) -> None:
    fault = only_fault(report, "duplicated")
    assert (fault.kind, fault.occurrences) == ("duplicated", 1)
    assert fault.samples == ("number 20 at 0@10, 0@20",)


def test_a_swap_of_two_is_found(report: AuditReport) -> None:
    fault = only_fault(report, "swapped")
    assert (fault.kind, fault.partition, fault.occurrences) == ("swapped", 0, 1)
    assert fault.samples == ("number 30 at 0@16 comes after 32",)


def test_a_key_in_a_wrong_partition_is_found(report: AuditReport) -> None:
    fault = only_fault(report, "moved")
    assert (fault.kind, fault.occurrences) == ("key moved", 1)
    assert fault.samples[0].startswith("key 'key-2': 1 in partition 1 from offset 6")


def test_a_future_timestamp_is_found(report: AuditReport) -> None:
    fault = only_fault(report, "future")
    assert (fault.kind, fault.partition, fault.occurrences) == ("future", 1, 1)
    assert fault.samples[0].startswith("offset 4 is ")


@pytest.mark.parametrize(("name", "partition", "offset"), [("not-json", 0, 4), ("not-text", 1, 5)])
def test_a_poison_record_is_found(
    report: AuditReport, name: str, partition: int, offset: int
) -> None:
    fault = only_fault(report, name)
    assert (fault.kind, fault.partition, fault.occurrences) == ("poison", partition, 1)
    assert fault.samples == (f"offset {offset} is the first",)


def test_progress_tells_records_and_what_is_left(progress: list[PipelineProgress]) -> None:
    steps = list(dict.fromkeys(each.step for each in progress))
    assert steps[0] == "reading"
    reading = [each for each in progress if each.step == "reading"]
    assert (reading[0].rows, reading[-1].lag) == (0, 0)
    assert reading[-1].rows == reading[0].lag > COUNT * len(PLANTED)


def test_the_html_report_is_one_file_with_every_fault_and_plot(report: AuditReport) -> None:
    page = as_html(report)
    assert not any(word in page for word in ("<script", "src=", "href=", "url(", "@import"))
    assert page.count("<svg") == len(report.plots) == 3
    for fault in report.faults:
        assert fault.sentence in page
    assert page.count("<tr>") == 1 + len(report.partitions)


def test_records_lost_at_the_ends_are_found_where_the_ends_are_told(
    spark: Any, bootstrap: str
) -> None:
    report = audited(
        spark,
        bootstrap,
        f"{PREFIX}clean",
        sequence="header:number",
        first_number=-3,
        last_number=COUNT + 2,
    )
    (fault,) = report.faults
    assert (fault.kind, fault.occurrences) == ("lost", 5)
    assert fault.samples == ("numbers -3 to -1", f"numbers {COUNT + 1} to {COUNT + 2}")


def test_sequences_by_partition_in_a_field_of_the_value(
    spark: Any, bootstrap: str, topic: str
) -> None:
    Topics(bootstrap, topic).create(partitions=PARTITIONS)
    produce(
        bootstrap,
        topic,
        (
            Sent(-1, partition, b"k%d" % partition, b'{"n": %d, "at": %d}' % (number, START_MS - 8))
            for partition in range(PARTITIONS)
            for number in range(20)
            if (partition, number) != (1, 5)
        ),
    )
    report = audited(
        spark, bootstrap, topic, sequence="field:n", scope="partition", sent_at="field:at"
    )
    (fault,) = report.faults
    assert (fault.kind, fault.samples) == ("lost", ("number 5 of 1",))
    assert report.partitions[0].latencies_ms == (8, 8, 8, 8)


def test_a_key_that_is_always_in_a_wrong_partition_is_found_by_its_hash(
    spark: Any, bootstrap: str, topic: str
) -> None:
    # Kafka's own tests give murmur2 of "foobar" as -790332482 and of "21" as -973932308. Without
    # the sign's bit both are even: of 2 partitions they belong in 0.
    Topics(bootstrap, topic).create(partitions=PARTITIONS)
    produce(bootstrap, topic, [Sent(0, 0, b"foobar"), Sent(1, 1, b"21"), Sent(2, 1, b"21")])
    (fault,) = audited(spark, bootstrap, topic, partitioner="murmur2").faults
    assert fault.samples == ("key '21': 2 in partition 1 from offset 0 (it belongs in 0)",)


AVRO_SCHEMA = """{"type": "record", "name": "Count", "fields": [{"name": "n", "type": "long"}]}"""


def test_a_value_that_is_no_avro_of_the_schema_is_poison(
    spark: Any, bootstrap: str, topic: str
) -> None:
    # A long is zigzag: 1 is the byte 2, and 0x80 says that more of the number follows.
    good, behind_a_registry_header, cut = b"\x02", b"\x00\x00\x00\x00\x07\x02", b"\x80"
    too_long = b"\x02\x02"
    values = [good, behind_a_registry_header, None, cut, good, too_long]
    Topics(bootstrap, topic).create(partitions=1)
    produce(bootstrap, topic, [Sent(n, 0, value=value) for n, value in enumerate(values)])
    (fault,) = audited(spark, bootstrap, topic, avro_schema=AVRO_SCHEMA).faults
    assert (fault.kind, fault.partition, fault.occurrences) == ("poison", 0, 2)
    assert fault.samples == ("offset 3 is the first",)


def test_offsets_that_a_broker_has_lost_are_a_gap(
    spark: Any, start_broker: Any, topic: str, tmp_path: Path
) -> None:
    broker = start_broker(data_dir=tmp_path / "data")
    Topics(broker.bootstrap, topic).create(partitions=1)
    for first in (0, 10, 20):
        produce(broker.bootstrap, topic, [Sent(number, 0) for number in range(first, first + 10)])
    broker.stop()
    (log,) = (tmp_path / "data" / f"{topic}-0").glob("*.log")
    data = log.read_bytes()
    _, second, third = iter_batches(data)
    log.write_bytes(data[: second.position] + data[third.position :])
    broker.start()
    (fault,) = audited(spark, broker.bootstrap, topic).faults
    assert (fault.kind, fault.partition, fault.occurrences) == ("gap", 0, 10)
    assert fault.samples == ("offsets 10 to 19",)


def test_a_missing_topic_is_told_in_one_sentence(spark: Any, bootstrap: str) -> None:
    with pytest.raises(SparkConnectorError, match=f"{PREFIX}nowhere"):
        audited(spark, bootstrap, f"{PREFIX}nowhere")
