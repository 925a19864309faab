"""The readers of streams, asked as Spark asks them, against a real broker and without a Spark.

Spark 4.0 is what the tests run; what 4.2 asks for is known from its interface, whose classes stand
here in small.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the data sources are classes of PySpark's")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from odradek.spark_connector.kafka_source.options import read_options
from odradek.spark_connector.kafka_source.source import stream_reader
from odradek.spark_connector.kafka_source.stream_reader import KafkaStreamReader

pytestmark = pytest.mark.clients

PARTITIONS = 2
ADMITTED = "odradek.spark_connector.kafka_source.admitted_stream_reader"
INTERFACE = "pyspark.sql.streaming.datasource"

Offsets = dict[str, dict[str, int]]


@dataclass
class ReadAllAvailable:
    """No limit."""


@dataclass
class ReadMinRows:
    min_rows: int


@dataclass
class ReadMaxRows:
    max_rows: int


@pytest.fixture
def spark_4_2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interface of a later Spark, where the installed one has none."""
    if INTERFACE not in sys.modules:
        module = ModuleType(INTERFACE)
        module.ReadLimit = object  # type: ignore[attr-defined]  # a module made here
        module.SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})  # type: ignore[attr-defined]  # likewise
        for limit in (ReadAllAvailable, ReadMinRows, ReadMaxRows):
            setattr(module, limit.__name__, limit)
        monkeypatch.setitem(sys.modules, INTERFACE, module)
    yield
    sys.modules.pop(ADMITTED, None)


@pytest.fixture
def admin(broker: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def fill(broker: Any, admin: AdminClient, topic: str) -> Any:
    """Makes the topic, then adds records to its partitions in turn."""
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()

    def fill_(count: int, partitions: int = PARTITIONS) -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(count):
            producer.produce(topic, value=b"v", partition=number % partitions)
        assert producer.flush(90) == 0

    return fill_


@pytest.fixture
def new_reader(broker: Any, topic: str) -> Any:
    def new_reader_(**options: str) -> Any:
        given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
        first = {"startingOffsets": "earliest"}
        return stream_reader(
            read_options({**given, **first, **options}, is_stream=True), ["partition", "offset"]
        )

    return new_reader_


def rows_between(reader: Any, start: Offsets, end: Offsets) -> int:
    return sum(
        batch.num_rows for part in reader.partitions(start, end) for batch in reader.read(part)
    )


def test_a_spark_that_requests_only_the_latest_gets_all_and_then_limited_batches(
    fill: Any, new_reader: Any, topic: str
) -> None:
    fill(60)
    reader = new_reader(maxOffsetsPerTrigger="20")
    assert type(reader) is KafkaStreamReader
    everything = reader.latestOffset()
    assert everything == {topic: {"0": 30, "1": 30}}
    assert rows_between(reader, reader.initialOffset(), everything) == 60
    fill(60)
    end = reader.latestOffset()
    assert end == {topic: {"0": 40, "1": 40}}
    assert rows_between(reader, everything, end) == 20
    reader.commit(end)
    assert reader.latestOffset() == {topic: {"0": 50, "1": 50}}


def test_a_restarted_query_goes_on_from_what_spark_tells(
    fill: Any, new_reader: Any, topic: str
) -> None:
    fill(60)
    reader = new_reader(maxOffsetsPerTrigger="20", limitFirstBatch="true")
    seen = {topic: {"0": 10, "1": 10}}
    assert reader.partitions(seen, seen) == []
    assert reader.latestOffset() == {topic: {"0": 20, "1": 20}}


def test_a_small_batch_waits_for_more(fill: Any, new_reader: Any, topic: str) -> None:
    fill(10)
    reader = new_reader(minOffsetsPerTrigger="20", limitFirstBatch="true")
    start = reader.initialOffset()
    first = reader.latestOffset()  # the first has nobody to wait for
    assert rows_between(reader, start, first) == 10
    fill(10)
    assert reader.latestOffset() == first
    fill(10)
    assert reader.latestOffset() == {topic: {"0": 15, "1": 15}}


def test_partitions_that_are_added_are_read_from_their_beginning(
    fill: Any, new_reader: Any, admin: AdminClient, topic: str
) -> None:
    fill(10)
    reader = new_reader()
    before = reader.latestOffset()
    assert rows_between(reader, reader.initialOffset(), before) == 10
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    fill(9, partitions=3)
    after = reader.latestOffset()
    assert after == {topic: {"0": 8, "1": 8, "2": 3}}
    assert rows_between(reader, before, after) == 9


def batches_until_nothing_is_left(reader: Any, ask: Any) -> list[int]:
    """How many rows each batch has, `ask` telling where one ends."""
    position, batches = reader.initialOffset(), []
    while (end := ask(position)) != position:
        batches.append(rows_between(reader, position, end))
        position = end
    return batches


def test_a_run_may_stop_at_what_was_there_when_it_began(fill: Any, new_reader: Any) -> None:
    fill(50)
    reader = new_reader(maxOffsetsPerTrigger="20", stopAtLatest="true")

    def ask(position: Offsets) -> Any:
        end = reader.latestOffset()
        fill(10)
        return end

    assert batches_until_nothing_is_left(reader, ask) == [20, 20, 10]


@pytest.mark.usefixtures("spark_4_2")
def test_with_a_later_spark_a_run_may_stop_there_too(fill: Any, new_reader: Any) -> None:
    fill(50)
    reader = new_reader(maxOffsetsPerTrigger="20", stopAtLatest="true")

    def ask(position: Offsets) -> Any:
        end = reader.latestOffset(position, reader.getDefaultReadLimit())
        fill(10)
        return end

    assert batches_until_nothing_is_left(reader, ask) == [20, 20, 10]


@pytest.mark.usefixtures("spark_4_2")
def test_a_later_spark_gets_limited_batches_up_to_what_available_now_began_with(
    fill: Any, new_reader: Any, topic: str
) -> None:
    fill(50)
    reader = new_reader(maxOffsetsPerTrigger="40")
    limit = reader.getDefaultReadLimit()
    assert limit.max_rows == 40
    reader.prepareForTriggerAvailableNow()
    fill(100)
    batches = batches_until_nothing_is_left(reader, lambda at: reader.latestOffset(at, limit))
    assert batches == [40, 10]
    assert reader.reportLatestOffset() == {topic: {"0": 25, "1": 25}}


@pytest.mark.usefixtures("spark_4_2")
def test_a_later_spark_that_wants_everything_gets_it(
    fill: Any, new_reader: Any, topic: str
) -> None:
    fill(50)
    reader = new_reader(maxOffsetsPerTrigger="10")
    module = sys.modules[INTERFACE]
    everything = module.ReadAllAvailable()  # type: ignore[attr-defined]  # made above
    end = reader.latestOffset(reader.initialOffset(), everything)
    assert end == {topic: {"0": 25, "1": 25}}
