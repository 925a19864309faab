"""Streams of Spark's own source and of `format("odradek")`: every documented option."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient
from support.spark_options import OF_STREAMS, not_proved
from support.spark_rows import Row, Selects, at, by_place, fill, first, places
from support.spark_streams import AS_SOON_AS_POSSIBLE, AVAILABLE_NOW, Stream

from odradek.spark_connector import OffsetsBehindLatest, offsets_behind_latest, register

from .conftest import Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SOURCES = ("kafka", "odradek")
PARTITIONS = 3
COUNT, OTHER_COUNT = 150, 30
LIMIT = 50

Start = Callable[..., dict[str, Stream]]


class Filled(NamedTuple):
    """Two topics, and all that was produced to them."""

    names: dict[str, str]
    rows: list[Row]

    def options(self, options: Mapping[str, str]) -> dict[str, str]:
        """A case's options with the topics' names in them."""
        given = dict(options)
        for stand_in, name in self.names.items():
            given = {key: text.replace(stand_in, name) for key, text in given.items()}
        return given


@pytest.fixture(scope="module")
def filled(broker: Any) -> Filled:
    topics = Topics(broker.bootstrap, f"streams-{os.getpid()}")
    names = {"FIRST": topics.create("-first", PARTITIONS), "OTHER": topics.create("-other", 1)}
    rows = fill(broker.bootstrap, names["FIRST"], COUNT, PARTITIONS)
    return Filled(names, rows + fill(broker.bootstrap, names["OTHER"], OTHER_COUNT, 1))


@pytest.fixture
def start(spark: Any, broker: Any, tmp_path: Path) -> Any:
    """Start a query of each source with the same options."""
    register(spark)
    with ExitStack() as stack:

        def begin(
            options: Mapping[str, str], trigger: Mapping[str, Any] = AS_SOON_AS_POSSIBLE
        ) -> dict[str, Stream]:
            given = {"kafka.bootstrap.servers": broker.bootstrap, **options}
            return {
                source: stack.enter_context(Stream(spark, source, given, tmp_path, trigger))
                for source in SOURCES
            }

        yield begin


class Case(NamedTuple):
    """Options, and which records they select of those that are there at the start."""

    options: dict[str, str]
    selects: Selects = lambda row: True
    tasks: int | None = None
    """How many tasks read a batch; None: it does not matter."""


CASES = {
    "from the beginning": Case(
        {
            "subscribe": "FIRST,OTHER",
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "minPartitions": "18",
        },
        tasks=18,
    ),
    "offsets of assigned partitions": Case(
        {
            "assign": '{"FIRST": [0, 1, 2]}',
            "startingOffsets": places(10, -2, -1),
            "maxRecordsPerPartition": "15",
            "failOnDataLoss": "false",
        },
        first(lambda row: row.partition == 1 or (row.partition == 0 and row.offset >= 10)),
    ),
    "a time for all of a pattern": Case(
        {
            "subscribePattern": "FIRST|OTHER",
            "startingTimestamp": str(at(20) + 1),
            "kafkaConsumer.pollTimeoutMs": "30000",
            "fetchOffset.numRetries": "5",
            "fetchOffset.retryIntervalMs": "100",
            "groupIdPrefix": "a-team",
            "kafka.max.poll.records": "7",
            "kafka.isolation.level": "read_committed",
        },
        lambda row: row.timestamp_ms > at(20),
    ),
    "times by partition, of which one is too late": Case(
        {
            "subscribe": "FIRST",
            "startingOffsetsByTimestamp": places(at(30), at(100_000), at(140)),
            "startingOffsetsByTimestampStrategy": "latest",
            "kafka.group.id": "a-group-of-streams",
            "maxOffsetsPerTrigger": "1000",
        },
        first(lambda row: row.timestamp_ms >= (at(30), at(100_000), at(140))[row.partition]),
    ),
}
HELD_BACK = {
    "subscribe": "TOPIC",
    "startingOffsets": "earliest",
    "minOffsetsPerTrigger": str(LIMIT),
    "maxTriggerDelay": "10h",
}


@pytest.mark.parametrize("case", CASES)
def test_both_sources_give_what_is_there(start: Start, filled: Filled, case: str) -> None:
    options, selects, tasks = CASES[case]
    wanted = by_place(row for row in filled.rows if selects(row))
    if "includeHeaders" not in options:
        wanted = [row.without_headers() for row in wanted]
    for source, stream in start(filled.options(options), AVAILABLE_NOW).items():
        assert stream.finish() == wanted, source
        if tasks is not None:
            assert stream.tasks == {0: tasks}, source


@pytest.mark.short
def test_every_documented_option_has_a_case() -> None:
    cases = [HELD_BACK, *(case.options for case in CASES.values())]
    assert not_proved(OF_STREAMS, cases) == set()


def test_a_stream_from_the_end_gives_only_what_comes_later(
    start: Start, broker: Any, topics: Topics
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    fill(broker.bootstrap, topic, 30, PARTITIONS)
    streams = start({"subscribe": topic, "includeHeaders": "true"})
    for stream in streams.values():
        stream.catch_up()
    later = fill(broker.bootstrap, topic, 60, PARTITIONS, first=30)
    for source, stream in streams.items():
        stream.catch_up()
        assert stream.rows == by_place(later), source


def behind_by_spark(source: Any) -> OffsetsBehindLatest:
    """What Spark's own source says of itself in a query's progress."""
    metrics = source["metrics"]
    least, most, average = (
        float(metrics[f"{each}OffsetsBehindLatest"]) for each in ("min", "max", "avg")
    )
    return OffsetsBehindLatest(round(average * PARTITIONS), int(least), int(most), average)


def test_batches_of_both_sources_are_alike_where_they_are_limited(
    start: Start, broker: Any, topics: Topics
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    produced = fill(broker.bootstrap, topic, 100, PARTITIONS)
    streams = start(
        {
            "subscribe": topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "40",
            "limitFirstBatch": "true",
        }
    )
    for stream in streams.values():
        stream.catch_up()
    of_spark, ours = (streams[source] for source in SOURCES)
    assert of_spark.rows == [row.without_headers() for row in by_place(produced)]
    assert len(of_spark.sizes) == 3
    assert ours.batches == of_spark.batches
    told = [each["sources"][0] for each in of_spark.query.recentProgress if each["numInputRows"]]
    assert [behind_by_spark(source) for source in told] == [
        offsets_behind_latest(source) for source in told
    ]
    assert [behind_by_spark(source).total for source in told] == [
        len(produced) - sum(of_spark.sizes[: number + 1]) for number in range(3)
    ]


def test_a_batch_waits_for_so_many_records_or_so_long(
    start: Start, broker: Any, topics: Topics
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    produced = fill(broker.bootstrap, topic, 10, PARTITIONS)
    streams = start({**HELD_BACK, "subscribe": topic})
    for source, stream in streams.items():
        stream.wait_for(lambda stream: stream.sizes == [10], "the first batch, which never waits")
        assert stream.query.isActive, source
    produced += fill(broker.bootstrap, topic, LIMIT - 1, PARTITIONS, first=10)
    for source, stream in streams.items():
        stream.catch_up()
        assert stream.sizes == [10], source
    produced += fill(broker.bootstrap, topic, 1, PARTITIONS, first=10 + LIMIT - 1)
    for source, stream in streams.items():
        stream.wait_for(lambda stream: len(stream.sizes) == 2, "the second batch")
        assert stream.sizes == [10, LIMIT], source
        assert stream.rows == [row.without_headers() for row in by_place(produced)], source


def test_a_delay_ends_the_waiting_for_records(start: Start, broker: Any, topics: Topics) -> None:
    topic = topics.create(partitions=PARTITIONS)
    fill(broker.bootstrap, topic, 10, PARTITIONS)
    streams = start({**HELD_BACK, "subscribe": topic, "maxTriggerDelay": "2s"})
    for stream in streams.values():
        stream.wait_for(lambda stream: stream.sizes == [10], "the first batch")
    fill(broker.bootstrap, topic, 5, PARTITIONS, first=10)
    for stream in streams.values():
        stream.wait_for(lambda stream: len(stream.rows) == 15, "the rest, which is not enough")


def test_a_topic_that_comes_to_match_a_pattern_is_read_from_its_beginning(
    start: Start, broker: Any, topics: Topics
) -> None:
    early = topics.create("-early", PARTITIONS)
    produced = fill(broker.bootstrap, early, 30, PARTITIONS)
    pattern = f"{topics.name}-(early|late)"
    settings = {"kafka.metadata.max.age.ms": "500", "startingOffsets": "earliest"}
    streams = start({"subscribePattern": pattern, **settings})
    for stream in streams.values():
        stream.wait_for(lambda stream: len(stream.rows) == 30, "what is there")
    produced += fill(broker.bootstrap, topics.create("-late", 1), 20, 1)
    fill(broker.bootstrap, topics.create("-neither", 1), 20, 1)
    for source, stream in streams.items():
        stream.wait_for(lambda stream: len(stream.rows) >= 50, "the topic that came later")
        assert stream.rows == [row.without_headers() for row in by_place(produced)], source


def test_only_what_is_committed_is_streamed(start: Start, broker: Any, topics: Topics) -> None:
    topic = topics.create(partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(90)
    streams = start(
        {
            "subscribe": topic,
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
        }
    )
    wanted = []
    for number, ends in enumerate(("commit", "abort", "commit")):
        producer.begin_transaction()
        for place in range(10):
            producer.produce(topic, b"%d-%d" % (number, place))
        assert producer.flush(90) == 0
        for source, stream in streams.items():
            stream.catch_up()
            assert [row.value for row in stream.rows] == wanted, source
        getattr(producer, f"{ends}_transaction")(90)
        if ends == "commit":
            wanted += [b"%d-%d" % (number, place) for place in range(10)]
    for source, stream in streams.items():
        stream.wait_for(lambda stream: len(stream.rows) >= len(wanted), "what was committed")
        stream.catch_up()
        assert [row.value for row in stream.rows] == wanted, source


def test_groups_are_named_as_the_options_say(
    spark: Any, broker: Any, filled: Filled, tmp_path: Path
) -> None:
    """Spark's own source joins a group only where it fetches offsets in the deprecated way."""
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    named = f"named-{os.getpid()}"
    common = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": filled.names["FIRST"],
        "startingOffsets": "earliest",
    }
    spark.conf.set(setting, "true")
    try:
        for name in ("groupIdPrefix", "kafka.group.id"):
            options = {**common, name: f"{named}-{name}"}
            with Stream(spark, "kafka", options, tmp_path / name, AVAILABLE_NOW) as stream:
                assert len(stream.finish()) == COUNT
    finally:
        spark.conf.unset(setting)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        groups = {group["group_id"] for group in admin.list_groups()}
    assert f"{named}-kafka.group.id" in groups
    assert any(group.startswith(f"{named}-groupIdPrefix-") for group in groups)


@pytest.mark.parametrize(
    "options",
    [
        {"endingOffsets": "latest"},
        {"endingOffsetsByTimestamp": places(1, 1, 1)},
        {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"},
        {"startingTimestamp": str(at(100_000))},
        {"startingOffsets": places(1)},
        {"failOnDataLoss": "true", "startingOffsets": places(0, 101, 0)},
        {"kafka.auto.offset.reset": "latest"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_both_sources_refuse(start: Start, filled: Filled, options: dict[str, str]) -> None:
    given = filled.options({"subscribe": "FIRST", **options})
    with pytest.raises(Exception, match=r"\w"):
        start(given, AVAILABLE_NOW)["kafka"].finish()
    with pytest.raises(Exception, match=r"\w"):
        start(given, AVAILABLE_NOW)["odradek"].finish()
