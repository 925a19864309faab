"""`audit` finds each fault that is planted in a topic, and nothing in one without."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from odradek.spark_connector.pipelines import AuditSettings, Fault, TopicSource, audit_topics

from .conftest import START_MS, Topics

pytestmark = pytest.mark.spark

PARTITIONS = 2
COUNT = 60


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


class Audited:
    """Topics of a test, produced to in order."""

    def __init__(self, spark: Any, topics: Topics) -> None:
        self._spark = spark
        self._topics = topics
        self.topic = topics.create(partitions=PARTITIONS)

    def produce(self, records: Iterable[Sent]) -> None:
        producer = Producer({"bootstrap.servers": self._topics.bootstrap})
        for record in records:
            self._produce(producer, record)
        assert producer.flush(30) == 0

    def produce_in_transactions(self, records: list[Sent], each: int, abort_every: int) -> None:
        """Transactions of `each` records; before every so-manieth, its records are aborted once."""
        producer = Producer(
            {"bootstrap.servers": self._topics.bootstrap, "transactional.id": self.topic}
        )
        producer.init_transactions(30)
        for place, first in enumerate(range(0, len(records), each)):
            for ends_well in (False, True) if place % abort_every == 0 else (True,):
                producer.begin_transaction()
                for record in records[first : first + each]:
                    self._produce(producer, record)
                if ends_well:
                    producer.commit_transaction(30)
                else:
                    producer.flush(30)
                    producer.abort_transaction(30)

    def _produce(self, producer: Any, record: Sent) -> None:
        producer.produce(
            self.topic,
            record.value,
            record.key,
            record.partition,
            timestamp=record.timestamp_ms,
            headers=[("number", str(record.number).encode())],
        )

    def report(self, **settings: Any) -> Any:
        source = TopicSource(self._topics.bootstrap, (self.topic,))
        asked = {"sequence": "header:number", "decode": "json", **settings}
        return audit_topics(self._spark, AuditSettings(source, **asked))

    def faults_of(self, records: list[Sent], **settings: Any) -> list[Fault]:
        self.produce(records)
        return self.faults(**settings)

    def faults(self, **settings: Any) -> list[Fault]:
        return list(self.report(**settings).faults)


@pytest.fixture
def audited(spark: Any, topics: Topics) -> Audited:
    return Audited(spark, topics)


def only(faults: list[Fault], kind: str) -> Fault:
    assert [fault.kind for fault in faults] == [kind], faults
    return faults[0]


def test_nothing_is_wrong_with_a_clean_topic(audited: Audited) -> None:
    audited.produce([*clean_records(), Sent(COUNT, 0, None, None)])
    report = audited.report(first_number=0, last_number=COUNT, scope="topic")
    assert report.is_clean, report.faults
    assert [(p.partition, p.records, p.missing_offsets) for p in report.partitions] == [
        (0, 31, 0),
        (1, 30, 0),
    ]
    assert [(p.keys, p.null_keys, p.tombstones) for p in report.partitions] == [
        (5, 1, 1),
        (5, 0, 0),
    ]
    size = len(b"key-1") + len(b'{"a": 1}')
    assert report.partitions[1].sizes == (size, size, size, size)
    assert report.partitions[1].bytes == 30 * size
    assert report.partitions[1].first_ms == START_MS + 1


def test_nothing_is_wrong_with_transactions_committed_and_aborted(audited: Audited) -> None:
    audited.produce_in_transactions(clean_records(), each=7, abort_every=3)
    report = audited.report()
    assert report.is_clean, report.faults
    assert report.records == COUNT
    missing = sum(partition.missing_offsets for partition in report.partitions)
    # 9 transactions and 3 aborted ones leave a marker in both partitions, those 21 - 2 records.
    assert missing == 2 * 12 + 3 * 7
    assert all(p.explained_offsets == p.missing_offsets for p in report.partitions)


def test_a_lost_record_is_found(audited: Audited) -> None:
    audited.produce(record for record in clean_records() if record.number != 17)
    fault = only(audited.faults(), "lost")
    assert fault.occurrences == 1
    assert fault.samples == ("number 17",)


def test_records_lost_at_the_ends_are_found_where_the_ends_are_told(audited: Audited) -> None:
    audited.produce(record for record in clean_records() if 3 <= record.number < COUNT - 2)
    assert audited.faults() == []
    fault = only(audited.faults(first_number=0, last_number=COUNT - 1), "lost")
    assert fault.occurrences == 5
    assert fault.samples == ("numbers 0 to 2", f"numbers {COUNT - 2} to {COUNT - 1}")


def test_a_duplicate_is_found_and_is_no_swap(audited: Audited) -> None:
    records = clean_records()
    audited.produce([*records[:40], records[20], *records[40:]])
    fault = only(audited.faults(), "duplicated")
    assert fault.occurrences == 1
    assert fault.samples == ("number 20 at 0@10, 0@20",)


def test_a_swap_of_two_is_found(audited: Audited) -> None:
    records = clean_records()
    records[30], records[32] = records[32], records[30]
    fault = only(audited.faults_of(records), "swapped")
    assert (fault.partition, fault.occurrences) == (0, 1)
    assert fault.samples == ("number 30 at 0@16 comes after 32",)


def test_a_key_in_a_wrong_partition_is_found(audited: Audited) -> None:
    records = clean_records()
    records[12] = records[12]._replace(partition=1)
    fault = only(audited.faults_of(records), "key moved")
    assert fault.occurrences == 1
    assert fault.samples[0].startswith("key 'key-2': 1 in partition 1 from offset 6")


def test_a_key_that_is_always_in_a_wrong_partition_is_found_by_its_hash(audited: Audited) -> None:
    # Kafka's own tests say that murmur2 of "foobar" is -790332482: in 2 partitions it is in 0.
    records = [Sent(number, 0, b"foobar") for number in range(5)]
    audited.produce(records)
    assert audited.faults(partitioner="murmur2") == []
    audited.produce(Sent(number, 1, b"21") for number in range(5, 9))  # -973932308: in 0, too
    assert audited.faults() == []
    fault = only(audited.faults(partitioner="murmur2"), "key moved")
    assert fault.samples == ("key '21': 4 in partition 1 from offset 0 (it belongs in 0)",)


def test_a_future_timestamp_is_found(audited: Audited) -> None:
    records = clean_records()
    records[9] = records[9]._replace(timestamp_ms=int(time.time() * 1000) + 600_000)
    fault = only(audited.faults_of(records), "future")
    assert (fault.partition, fault.occurrences) == (1, 1)
    assert fault.samples[0].startswith("offset 4 is ")


@pytest.mark.parametrize(
    ("decode", "value"), [("json", b'{"a": 1'), ("json", b"\xff\xfe"), ("utf8", b"\xc3(")]
)
def test_a_poison_record_is_found(audited: Audited, decode: str, value: bytes) -> None:
    records = clean_records()
    records[8] = records[8]._replace(value=value)
    fault = only(audited.faults_of(records, decode=decode), "poison")
    assert (fault.partition, fault.occurrences) == (0, 1)
    assert fault.samples == ("offset 4 is the first",)


def test_sequences_by_partition_are_kept_apart(audited: Audited) -> None:
    audited.produce(
        Sent(number, partition, b"k%d" % partition)
        for partition in range(PARTITIONS)
        for number in range(20)
        if (partition, number) != (1, 5)
    )
    fault = only(audited.faults(scope="partition"), "lost")
    assert fault.samples == ("number 5 of 1",)
    assert only(audited.faults(scope="topic"), "duplicated").occurrences == 19


def test_a_number_may_stand_in_a_field_of_the_value(audited: Audited) -> None:
    audited.produce(
        Sent(-1, 0, value=b'{"it\'s": {"no": 1}, "n": %d}' % number)
        for number in range(10)
        if number != 4
    )
    assert only(audited.faults(sequence="field:n"), "lost").samples == ("number 4",)
