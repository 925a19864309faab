"""Batches of Spark's own source and of `format("odradek")`: every documented option.

Each case says which of the records produced it must give; both sources have to give these, in
every column, and so each other's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from kafka.admin import KafkaAdminClient
from support.spark_options import OF_BATCHES, not_proved
from support.spark_rows import (
    LOG_APPEND_TIME,
    START_MS,
    Row,
    Selects,
    at,
    by_place,
    fill,
    first,
    places,
    rows_of,
    send,
)

from odradek.spark_connector import SparkConnectorError, register
from odradek.spark_connector.kafka_source.batch_reader import planned_ranges
from odradek.spark_connector.kafka_source.cluster import KafkaOffsetReader
from odradek.spark_connector.kafka_source.filters import PushedFilters
from odradek.spark_connector.kafka_source.options import read_options

from .conftest import Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SOURCES = ("kafka", "odradek")
PARTITIONS = 3
COUNT, OTHER_COUNT = 300, 50
LAST = COUNT // PARTITIONS


class Filled(NamedTuple):
    """Two topics, and all that was produced to them."""

    names: dict[str, str]
    """By what stands for them in a case's options."""
    rows: list[Row]

    def options(self, options: dict[str, str]) -> dict[str, str]:
        """A case's options with the topics' names in them."""
        for stand_in, name in self.names.items():
            options = {key: text.replace(stand_in, name) for key, text in options.items()}
        return options


@pytest.fixture(scope="module")
def filled(broker: Any) -> Filled:
    topics = Topics(broker.bootstrap, f"batches-{os.getpid()}")
    names = {"FIRST": topics.create("-first", PARTITIONS), "OTHER": topics.create("-other", 1)}
    rows = fill(broker.bootstrap, names["FIRST"], COUNT, PARTITIONS)
    return Filled(names, rows + fill(broker.bootstrap, names["OTHER"], OTHER_COUNT, 1))


@pytest.fixture(scope="module")
def read(spark: Any, broker: Any) -> Callable[..., Any]:
    """A frame of a source with some options."""
    register(spark)

    def load(source: str, options: dict[str, str]) -> Any:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.options(**options).load()

    return load


NONE: Selects = lambda row: False  # noqa: E731  # as the other choices, a value


def between(starts: tuple[int, ...], ends: tuple[int, ...]) -> Selects:
    """Records of FIRST between two offsets of each partition."""
    return first(lambda row: starts[row.partition] <= row.offset < ends[row.partition])


class Case(NamedTuple):
    """Options, and which records they select."""

    options: dict[str, str]
    selects: Selects = lambda row: True
    tasks: int | None = None
    """How many tasks read; None: it does not matter."""


CASES = {
    "two topics": Case({"subscribe": "FIRST, OTHER", "includeHeaders": "true"}),
    "a pattern for both": Case({"subscribePattern": "FIRST|OTHER"}),
    "a pattern for one": Case({"subscribePattern": "FIRST"}, first(), PARTITIONS),
    "partitions": Case(
        {"assign": '{"FIRST": [2, 0], "OTHER": [0]}', "includeHeaders": "TRUE"},
        lambda row: row.topic.endswith("-other") or row.partition != 1,
        3,
    ),
    "words": Case(
        {"subscribe": "FIRST", "startingOffsets": "earliest", "endingOffsets": "LATEST"}, first()
    ),
    "offsets": Case(
        {
            "subscribe": "FIRST",
            "startingOffsets": places(10, -2, 99),
            "endingOffsets": places(20, -1, 100),
        },
        between((10, 0, 99), (20, LAST, 100)),
    ),
    "nothing between two offsets": Case(
        {
            "subscribe": "FIRST",
            "startingOffsets": places(10, 10, 10),
            "endingOffsets": places(10, 10, 10),
        },
        between((10, 10, 10), (10, 10, 10)),
    ),
    "two times for all": Case(
        {
            "subscribe": "FIRST,OTHER",
            "startingTimestamp": str(at(20) + 1),
            "endingTimestamp": str(at(140)),
        },
        lambda row: at(20) < row.timestamp_ms < at(140),
    ),
    "times by partition": Case(
        {
            "subscribe": "FIRST",
            "startingOffsetsByTimestamp": places(at(0) - 1, at(91), at(200) + 1),
            "endingOffsetsByTimestamp": places(at(30), at(100_000), at(203)),
        },
        first(
            lambda row: (
                (0, at(91), at(201))[row.partition]
                <= row.timestamp_ms
                < (at(30), at(100_000), at(203))[row.partition]
            )
        ),
    ),
    "times before offsets": Case(
        {
            "subscribe": "FIRST",
            "startingTimestamp": str(at(150)),
            "startingOffsetsByTimestamp": places(1, 1, 1),
            "startingOffsets": places(3, 3, 3),
            "endingOffsetsByTimestamp": places(at(160), at(160), at(160)),
            "endingOffsets": places(4, 4, 4),
        },
        first(lambda row: at(150) <= row.timestamp_ms < at(160)),
    ),
    "no record as late": Case(
        {
            "subscribe": "FIRST",
            "startingOffsetsByTimestamp": places(at(100_000), at(298), at(100_000)),
            "startingOffsetsByTimestampStrategy": "latest",
        },
        first(lambda row: row.partition == 1 and row.timestamp_ms >= at(298)),
    ),
    "so many tasks": Case({"subscribe": "FIRST", "minPartitions": "9"}, first(), 9),
    "so many records a task": Case({"subscribe": "FIRST", "maxRecordsPerPartition": "40"}, first()),
    "paces": Case(
        {
            "subscribe": "FIRST",
            "kafkaConsumer.pollTimeoutMs": "30000",
            "fetchOffset.numRetries": "5",
            "fetchOffset.retryIntervalMs": "100",
            "failOnDataLoss": "false",
        },
        first(),
    ),
    "settings of the client": Case(
        {
            "subscribe": "FIRST",
            "groupIdPrefix": "a-team",
            "kafka.max.poll.records": "7",
            "kafka.fetch.max.wait.ms": "50",
            "kafka.fetch.min.bytes": "1",
            "kafka.fetch.max.bytes": "5000",
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.client.id": "a-client",
            "kafka.client.rack": "a-rack",
            "kafka.check.crcs": "true",
            "kafka.receive.buffer.bytes": "65536",
            "kafka.metadata.max.age.ms": "1000",
            "kafka.request.timeout.ms": "20000",
            "kafka.isolation.level": "read_committed",
        },
        first(),
    ),
    "a group's name": Case(
        {"subscribe": "FIRST", "kafka.group.id": "a-group", "kafka.session.timeout.ms": "6000"},
        first(),
    ),
    "an end behind the log's, and no failure": Case(
        {
            "subscribe": "FIRST",
            "endingOffsets": places(150, LAST, 20),
            "failOnDataLoss": "false",
            "kafkaConsumer.pollTimeoutMs": "5000",  # so long Spark's own waits at the end
        },
        between((0, 0, 0), (LAST, LAST, 20)),
    ),
    "a partition that is not there": Case(
        {"assign": '{"FIRST": [0, 7]}'}, first(lambda row: row.partition == 0), 1
    ),
    "an internal topic": Case({"subscribe": "FIRST,__consumer_offsets"}, first(), PARTITIONS),
    "partitions of an internal topic": Case({"assign": '{"__consumer_offsets": [0]}'}, NONE),
    "a pattern that internal topics match": Case({"subscribePattern": "__.*"}, NONE),
    "settings that no client has": Case(
        {"subscribe": "FIRST", "kafka.no.such.key": "x", "kafka.fetch.max.bites": "5"}, first()
    ),
    "what is for streams": Case(
        {
            "subscribe": "FIRST",
            "maxOffsetsPerTrigger": "10",
            "minOffsetsPerTrigger": "5",
            "maxTriggerDelay": "1s",
        },
        first(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_both_sources_give_what_was_produced(
    read: Callable[..., Any], filled: Filled, case: str
) -> None:
    options, selects, tasks = CASES[case]
    wanted = by_place(row for row in filled.rows if selects(row))
    if "includeHeaders" not in options:
        wanted = [row.without_headers() for row in wanted]
    for source in SOURCES:
        frame = read(source, filled.options(options))
        assert rows_of(frame) == wanted, source
        if tasks is not None:
            assert frame.rdd.getNumPartitions() == tasks, source


@pytest.mark.short
def test_every_documented_option_has_a_case() -> None:
    assert not_proved(OF_BATCHES, [case.options for case in CASES.values()]) == set()


def test_times_of_the_broker_are_marked_as_such(
    read: Callable[..., Any], broker: Any, topic: str
) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        settings = {"message.timestamp.type": "LogAppendTime"}
        admin.create_topics(
            {topic: {"num_partitions": 1, "configs": settings}}, wait_for_metadata=True
        )
    before_ms = time.time_ns() // 1_000_000
    sent = [Row(topic, 0, n, START_MS, LOG_APPEND_TIME, None, b"%d" % n, None) for n in range(5)]
    send(broker.bootstrap, sent)
    after_ms = time.time_ns() // 1_000_000
    of_spark, ours = (rows_of(read(source, {"subscribe": topic})) for source in SOURCES)
    assert [row._replace(timestamp_ms=START_MS) for row in of_spark] == sent
    assert all(before_ms <= row.timestamp_ms <= after_ms for row in of_spark)
    assert ours == of_spark


def test_both_sources_have_the_documented_columns(read: Callable[..., Any], filled: Filled) -> None:
    columns = {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
    }
    headers = {"headers": "array<struct<key:string,value:binary>>"}
    for source in SOURCES:
        options = filled.options({"subscribe": "FIRST"})
        assert dict(read(source, options).dtypes) == columns
        assert dict(read(source, {**options, "includeHeaders": "true"}).dtypes) == columns | headers


class Refusal(NamedTuple):
    """Options that make no sense, and what Spark's own source says of them."""

    options: dict[str, str]
    told: str


ONLY = {"subscribe": "FIRST"}
BACKWARDS = r"Beginning offset \d+ is after the ending offset"
OTHERS = r"don't match what are assigned"
REFUSED = {
    "no topics": Refusal({}, "One of the following options must be specified"),
    "two ways to choose": Refusal({**ONLY, "subscribePattern": ".*"}, "Only one of the following"),
    "an empty choice": Refusal({"subscribe": " , "}, "No topics to subscribe to"),
    "an empty pattern": Refusal({"subscribePattern": ""}, "Pattern to subscribe is empty"),
    "partitions that are no JSON": Refusal({"assign": "FIRST"}, "No topicpartitions to assign"),
    "a topic that is not there": Refusal({"subscribe": "no-such"}, "UnknownTopicOrPartition"),
    "a start at the end": Refusal({**ONLY, "startingOffsets": "latest"}, "can't be latest"),
    "a start at the end of one": Refusal(
        {**ONLY, "startingOffsets": places(0, -1, 0)}, "can't be latest"
    ),
    "an end at the start": Refusal({**ONLY, "endingOffsets": "earliest"}, "can't be earliest"),
    "an end at the start of one": Refusal(
        {**ONLY, "endingOffsets": places(5, -2, 5)}, "can't be earliest"
    ),
    "offsets of some": Refusal({**ONLY, "startingOffsets": places(1, 1)}, OTHERS),
    "offsets of too many": Refusal({**ONLY, "endingOffsets": places(1, 1, 1, 1)}, OTHERS),
    "times of some": Refusal({**ONLY, "startingOffsetsByTimestamp": places(1)}, OTHERS),
    "a time that is none": Refusal({**ONLY, "startingTimestamp": "noon"}, "noon"),
    "a time after the last record": Refusal(
        {**ONLY, "startingTimestamp": str(at(100_000))}, "No offset matched"
    ),
    "a start behind the end": Refusal({**ONLY, "startingOffsets": places(0, 101, 0)}, BACKWARDS),
    "a start behind the end, though losses are none": Refusal(
        {**ONLY, "startingOffsets": places(0, 101, 0), "failOnDataLoss": "false"}, BACKWARDS
    ),
    "an end before the start": Refusal(
        {**ONLY, "startingOffsets": places(20, 0, 0), "endingOffsets": places(10, 9, 9)}, BACKWARDS
    ),
    "a time that ends before it begins": Refusal(
        {**ONLY, "startingTimestamp": str(at(150)), "endingTimestamp": str(at(20))}, BACKWARDS
    ),
    "an end by time before the start": Refusal(
        {**ONLY, "startingOffsets": places(90, 90, 90), "endingTimestamp": str(at(20))}, BACKWARDS
    ),
    "an end behind the log's": Refusal(
        {**ONLY, "endingOffsets": places(150, 1, 1), "kafkaConsumer.pollTimeoutMs": "5000"},
        "failOnDataLoss|timed out|Timeout|data may have been lost",
    ),
    "a partition of no topic": Refusal({"assign": '{"no-such": [0]}'}, "UnknownTopicOrPartition"),
    "no task": Refusal({**ONLY, "minPartitions": "0"}, "minPartitions must be positive"),
    "tasks without records": Refusal(
        {**ONLY, "maxRecordsPerPartition": "-1"}, "(?i)maxRecordsPerPartition must be positive"
    ),
    **{
        f"the client's own {name}": Refusal(
            {**ONLY, f"kafka.{name}": "x"}, f"{name}.*not supported"
        )
        for name in (
            "key.deserializer",
            "value.deserializer",
            "auto.offset.reset",
            "enable.auto.commit",
            "interceptor.classes",
        )
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_both_sources_refuse(
    read: Callable[..., Any], broker: Any, filled: Filled, case: str
) -> None:
    options = filled.options(REFUSED[case].options)
    with pytest.raises(Exception, match=REFUSED[case].told):
        read("kafka", options).collect()
    with pytest.raises(SparkConnectorError):
        plan({"kafka.bootstrap.servers": broker.bootstrap, **options})


def plan(options: dict[str, str]) -> None:
    """What our source does before it reads; through Spark only the last line would be other."""
    ours = read_options(options, is_stream=False)
    planned_ranges(ours, KafkaOffsetReader(ours), PushedFilters())
