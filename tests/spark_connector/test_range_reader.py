"""What a task does with its range of offsets, against a real broker and without a Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the data sources are classes of PySpark's")

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.kafka_source import range_reader
from odradek.spark_connector.kafka_source.batch_reader import range_settings
from odradek.spark_connector.kafka_source.offset_ranges import OffsetRange
from odradek.spark_connector.kafka_source.options import read_options
from odradek.spark_connector.kafka_source.range_reader import read_range

pytestmark = pytest.mark.clients

Read = Callable[..., list[tuple[int, bytes]]]

OF_LIBRDKAFKA = {"kafka.socket.keepalive.enable": "true"}
"""With a setting that only librdkafka knows it reads all."""


@pytest.fixture(params=[{}, OF_LIBRDKAFKA], ids=["direct", "librdkafka"])
def read(broker: Any, topic: str, request: pytest.FixtureRequest) -> Read:
    """Read a range of partition 0 as a task does: its offsets and values."""

    def read_(start: int, until: int, **options: str) -> list[tuple[int, bytes]]:
        given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **request.param}
        more = {name.replace("__", "."): value for name, value in options.items()}
        read = read_options({**given, **more}, is_stream=False)
        settings = range_settings(read, ("offset", "value"))
        rows: list[tuple[int, bytes]] = []
        for batch in read_range(settings, OffsetRange(topic, 0, start, until)):
            columns = batch.to_pydict()
            rows += zip(columns["offset"], columns["value"], strict=True)
        return rows

    return read_


@pytest.fixture
def admin(broker: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def filled(broker: Any, admin: AdminClient, topic: str) -> str:
    """A topic of 50 records; each value is its offset."""
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(50):
        producer.produce(topic, value=b"%d" % number, partition=0)
    assert producer.flush(90) == 0
    return topic


def numbered(start: int, until: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in range(start, until)]


def test_ranges_are_read_one_after_another_by_one_consumer(filled: str, read: Read) -> None:
    assert read(10, 20) == numbered(10, 20)
    assert read(0, 50) == numbered(0, 50)
    assert read(49, 50) == numbered(49, 50)
    assert read(5, 5) == []


def test_what_is_deleted_meanwhile_fails_the_task_or_is_left_out(
    filled: str, read: Read, admin: AdminClient
) -> None:
    admin.delete_records([TopicPartition(filled, 0, 20)])[TopicPartition(filled, 0, 20)].result()
    with pytest.raises(SparkConnectorError, match=r"from offset 5 on.*offsets 20 to 50"):
        read(5, 40)
    assert read(5, 40, failOnDataLoss="false") == numbered(20, 40)
    assert read(5, 15, failOnDataLoss="false") == []
    assert read(20, 50) == numbered(20, 50)


def test_a_topic_deleted_meanwhile_fails_the_task_or_ends_it(
    filled: str, read: Read, admin: AdminClient
) -> None:
    admin.delete_topics([filled])[filled].result()
    with pytest.raises(SparkConnectorError, match="cannot be read from offset 0 on"):
        read(0, 50)
    assert read(0, 50, failOnDataLoss="false") == []


def test_records_that_do_not_come_are_waited_for_and_reported(filled: str, read: Read) -> None:
    with pytest.raises(SparkConnectorError, match=r"gave nothing from offset 50 .*ends at 50"):
        read(40, 60, kafkaConsumer__pollTimeoutMs="3000")


def test_markers_and_aborted_records_at_the_end_hold_nothing_up(
    broker: Any, admin: AdminClient, topic: str, read: Read
) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(90)
    for end in ("commit", "abort"):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, value=b"%d" % number)
        assert producer.flush(90) == 0
        getattr(producer, f"{end}_transaction")(90)
    committed = {
        "kafka__isolation__level": "read_committed",
        "kafkaConsumer__pollTimeoutMs": "60000",
    }
    assert read(0, 22, **committed) == numbered(0, 10)
    began = time.monotonic()
    assert read(0, 22, **committed) == numbered(0, 10)
    assert read(12, 20, **committed) == []
    assert time.monotonic() - began < 50
    assert len(read(0, 22)) == 20


@pytest.fixture
def consumers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The consumers of librdkafka that tasks have made."""
    made: list[Any] = []
    new_consumer = range_reader._new_consumer

    def noted(settings: dict[str, Any]) -> Any:
        made.append(new_consumer(settings))
        return made[-1]

    monkeypatch.setattr(range_reader, "_new_consumer", noted)
    monkeypatch.setattr(range_reader, "_CONSUMERS", range_reader._Consumers())
    return made


@pytest.mark.parametrize("read", [{}], indirect=True)
def test_what_goes_well_needs_no_librdkafka(
    filled: str, read: Read, admin: AdminClient, consumers: list[Any]
) -> None:
    assert read(0, 50) == numbered(0, 50)
    assert consumers == []
    admin.delete_records([TopicPartition(filled, 0, 20)])[TopicPartition(filled, 0, 20)].result()
    assert read(5, 40, failOnDataLoss="false") == numbered(20, 40)
    assert consumers != []


@pytest.mark.parametrize("read", [{}], indirect=True)
def test_batches_of_a_record_each_are_left_to_librdkafka(
    broker: Any, admin: AdminClient, topic: str, read: Read, consumers: list[Any]
) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1})
    for number in range(300):
        producer.produce(topic, value=b"%d" % number, partition=0)
    assert producer.flush(90) == 0
    small = {"kafka__max__partition__fetch__bytes": "10000"}
    assert read(0, 60, **small) == numbered(0, 60)
    assert consumers == []
    assert read(0, 300, **small) == numbered(0, 300)
    assert consumers != []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_both_ways_give_the_same_columns(
    broker: Any, admin: AdminClient, topic: str, codec: str
) -> None:
    """Transactions of two producers that overlap, of which one is aborted now and then."""
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    settings = {"bootstrap.servers": broker.bootstrap, "compression.type": codec}
    producers = [Producer({**settings, "transactional.id": f"{topic}-{n}"}) for n in range(2)]
    for producer in producers:
        producer.init_transactions(90)
    number = 0
    for round_ in range(4):
        for producer in producers:
            producer.begin_transaction()
        for producer in producers * 3:
            for _ in range(20):
                number += 1
                producer.produce(
                    topic,
                    key=None if number % 3 == 0 else f"key-{number}",
                    value=None if number % 5 == 0 else f"value-{number}" * (number % 30),
                    timestamp=1_370_088_000_000 + number,
                    headers=[("n", b"%d" % number), ("null", None)] if number % 2 else None,
                )
            assert producer.flush(90) == 0
        for producer, ends_well in zip(producers, (round_ % 2 == 0, round_ == 1), strict=True):
            (producer.commit_transaction if ends_well else producer.abort_transaction)(90)
    columns = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    for isolation in ("read_committed", "read_uncommitted"):
        given = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "kafka.isolation.level": isolation,
            "kafka.max.partition.fetch.bytes": "3000",
            "subscribe": topic,
        }
        found = []
        for more in ({}, OF_LIBRDKAFKA):
            options = read_options({**given, **more}, is_stream=False)
            settings_ = range_settings(options, (*columns, "headers"))
            batches = read_range(settings_, OffsetRange(topic, 0, 7, 480 + 8))
            found.append([row for batch in batches for row in batch.to_pylist()])
        assert found[0] == found[1]
        assert len(found[0]) == (480 - 7 if isolation == "read_uncommitted" else 180 - 7)
