"""`format("odradek")` beside Spark's own source: the same options give the same rows.

Spark's own source, in Java, is the reference; the records were produced by confluent-kafka.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from odradek.spark_connector import register

from .conftest import START_MS, STEP_MS, Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PARTITIONS = 3
QUERY_SECONDS_MAX = 240

MAX_REQUEST_SIZE = 1_048_576
"""Java's default."""
Rows = list[Any]

LIBRDKAFKAS_OWN = {"kafka.socket.keepalive.enable": "true"}
"""A setting with which librdkafka reads all; without one it only steps in."""


@pytest.fixture(scope="module")
def registered(spark: Any) -> Any:
    """The session, which knows both sources."""
    return register(spark)


@pytest.fixture(scope="module")
def names(broker: Any) -> dict[str, str]:
    """Two topics: `plain` of every codec, with nulls and headers; `transacted`, with an abort."""
    prefix = f"both-{os.getpid()}"
    topics = Topics(broker.bootstrap, prefix)
    found = {kind: topics.create(f"-{kind}", PARTITIONS) for kind in ("plain", "transacted")}
    _fill_plain(broker.bootstrap, found["plain"])
    _fill_transacted(broker.bootstrap, found["transacted"])
    return found


def _fill_plain(bootstrap: str, topic: str) -> None:
    number = 0
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for _ in range(60):
            producer.produce(
                topic,
                key=None if number % 3 == 0 else f"key-{number}",
                value=None if number % 5 == 0 else f"value-{number}" * (number % 7),
                partition=number % PARTITIONS,
                timestamp=START_MS + number * STEP_MS,
                headers=[("n", b"%d" % number), ("null", None)] if number % 2 else None,
            )
            number += 1
        assert producer.flush(90) == 0


def _fill_transacted(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(90)
    for round_number, ends in enumerate(("commit", "abort", "commit", "abort")):
        producer.begin_transaction()
        for number in range(30):
            producer.produce(
                topic,
                value=f"{ends}-{round_number}-{number}",
                partition=number % PARTITIONS,
                timestamp=START_MS + round_number * STEP_MS,
            )
        assert producer.flush(90) == 0  # or those of a transaction that is aborted stay here
        getattr(producer, f"{ends}_transaction")(90)


def rows(spark: Any, source: str, bootstrap: str, **options: str) -> Rows:
    """All rows of a batch read, in order; options are written with `__` for a dot."""
    reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), value)
    found: Rows = reader.load().collect()
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def per_partition(*numbers: int) -> str:
    """An option in JSON for the topic whose name stands in for TOPIC."""
    return json.dumps({"TOPIC": {str(place): number for place, number in enumerate(numbers)}})


CASES: dict[str, tuple[str, dict[str, str], int]] = {
    "all": ("plain", {}, 300),
    "headers": ("plain", {"includeHeaders": "true"}, 300),
    "offsets": (
        "plain",
        {
            "startingOffsets": per_partition(10, -2, 99),
            "endingOffsets": per_partition(20, -1, 100),
        },
        111,
    ),
    "times by partition": (
        "plain",
        {
            "startingOffsetsByTimestamp": per_partition(
                START_MS, START_MS + 90_001, START_MS + 200_000
            ),
            "endingOffsetsByTimestamp": per_partition(
                START_MS + 30_000, START_MS + 10_000_000, START_MS + 200_001
            ),
        },
        10 + 70 + 1,
    ),
    "times": (
        "plain",
        {"startingTimestamp": str(START_MS + 50_500), "endingTimestamp": str(START_MS + 150_000)},
        99,
    ),
    "no record as late": (
        "plain",
        {
            "startingTimestamp": str(START_MS + 10_000_000),
            "startingOffsetsByTimestampStrategy": "latest",
        },
        0,
    ),
    "pattern": ("pattern", {}, 300 + 120),
    "assign": ("assign", {}, 200),
    "tasks": ("plain", {"minPartitions": "7", "maxRecordsPerPartition": "40"}, 300),
    "uncommitted": ("transacted", {"kafka.isolation.level": "read_uncommitted"}, 120),
    "committed": ("transacted", {"kafka.isolation.level": "read_committed"}, 60),
    "committed in many tasks": (
        "transacted",
        {"kafka.isolation.level": "read_committed", "minPartitions": "12"},
        60,
    ),
    "client settings": (
        "plain",
        {
            "kafka.max.poll.records": "10",
            "kafka.fetch.max.wait.ms": "50",
            "kafka.max.partition.fetch.bytes": "1000",
            "groupIdPrefix": "team",
            "kafkaConsumer.pollTimeoutMs": "20000",
            "fetchOffset.numRetries": "2",
            "failOnDataLoss": "false",
        },
        300,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_both_sources_give_the_same_rows(
    registered: Any, broker: Any, names: dict[str, str], case: str
) -> None:
    kind, options, count = CASES[case]
    if kind == "pattern":
        selection = {"subscribePattern": names["plain"].replace("plain", "(plain|trans.*)")}
    elif kind == "assign":
        selection = {"assign": json.dumps({names["plain"]: [2, 0]})}
    else:
        selection = {"subscribe": names[kind]}
    given = {name: value.replace("TOPIC", names["plain"]) for name, value in options.items()}
    of_spark = rows(registered, "kafka", broker.bootstrap, **selection, **given)
    ours = rows(registered, "odradek", broker.bootstrap, **selection, **given)
    by_librdkafka = rows(
        registered, "odradek", broker.bootstrap, **selection, **given, **LIBRDKAFKAS_OWN
    )
    assert len(of_spark) == count
    assert ours == of_spark
    assert by_librdkafka == of_spark


def test_both_sources_have_the_same_schema(registered: Any, names: dict[str, str]) -> None:
    def schema(source: str) -> Any:
        reader = registered.read.format(source).option("kafka.bootstrap.servers", "127.0.0.1:1")
        options = {"subscribe": names["plain"], "includeHeaders": "true"}
        return reader.options(**options).load().schema

    assert schema("odradek") == schema("kafka")


def test_a_schema_of_fewer_columns_reads_no_others(
    registered: Any, broker: Any, names: dict[str, str]
) -> None:
    reader = registered.read.format("odradek").option("kafka.bootstrap.servers", broker.bootstrap)
    frame = reader.option("subscribe", names["plain"]).schema("offset BIGINT, value BINARY").load()
    assert frame.columns == ["offset", "value"]
    assert frame.count() == 300
    with pytest.raises(Exception, match="the schema has a column 'nothing'"):
        reader.option("subscribe", names["plain"]).schema("nothing INT").load().count()


def test_min_partitions_are_tasks(registered: Any, broker: Any, names: dict[str, str]) -> None:
    reader = registered.read.format("odradek").option("kafka.bootstrap.servers", broker.bootstrap)
    frame = reader.options(subscribe=names["plain"], minPartitions="6").load()
    assert frame.rdd.getNumPartitions() == 6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"subscribe": "no-such-topic"}, "option 'subscribe' names topic 'no-such-topic'"),
        ({"subscribe": "PLAIN", "kafka__ssl__nonsense": "1"}, "option 'kafka.ssl.nonsense' cannot"),
        (
            {"subscribe": "PLAIN", "startingOffsets": '{"PLAIN": {"0": 0, "1": 999, "2": 0}}'},
            "partition 1 of .* from offset 999 to",
        ),
        (
            {"subscribe": "PLAIN", "startingOffsets": '{"PLAIN": {"0": 1}}'},
            "option 'startingOffsets' must name the partitions.*leaves out partition 1",
        ),
        (
            {"subscribe": "PLAIN", "startingTimestamp": str(START_MS * 2)},
            "option 'startingTimestamp': partition 0 .* has no record as late",
        ),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    registered: Any, broker: Any, names: dict[str, str], options: dict[str, str], told: str
) -> None:
    given = {name: text.replace("PLAIN", names["plain"]) for name, text in options.items()}
    with pytest.raises(Exception, match=f"Error: .*{told}"):
        rows(registered, "odradek", broker.bootstrap, **given)


def test_a_broker_that_is_not_there_is_told(registered: Any) -> None:
    with pytest.raises(Exception, match=r"no broker answers at option 'kafka\.bootstrap\.servers'"):
        rows(
            registered,
            "odradek",
            "127.0.0.1:1",
            subscribe="any",
            kafka__default__api__timeout__ms="1000",
        )


def test_deleted_records_are_a_failure_unless_that_is_allowed(
    registered: Any, broker: Any, topics: Topics
) -> None:
    topic = topics.create(partitions=1)
    produced = topics.fill(topic, 50, partitions=1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 20)]).values():
        future.result()
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 5}})}
    with pytest.raises(Exception, match=r"begins at 5 in partition 0.*first offset now is 20"):
        rows(registered, "odradek", broker.bootstrap, **options)
    found = rows(registered, "odradek", broker.bootstrap, **options, failOnDataLoss="false")
    assert [row["offset"] for row in found] == [each.offset for each in produced[20:]]


# --- Streams ---------------------------------------------------------------------------------


class Stream:
    """A query from `format("odradek")` to Parquet, run again and again from its checkpoint."""

    def __init__(self, spark: Any, bootstrap: str, topic: str, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._reader = (
            spark.readStream.format("odradek")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
        )

    def start(self, trigger: dict[str, Any], **options: str) -> Any:
        return (
            self._reader.options(**options)
            .load()
            .writeStream.format("parquet")
            .option("path", str(self._folder / "table"))
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(**trigger)
            .start()
        )

    def run(self, **options: str) -> list[int]:
        """Read what is there; gives the rows of each batch that had any."""
        query = self.start({"availableNow": True}, **options)
        assert query.awaitTermination(QUERY_SECONDS_MAX)
        return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]

    def values(self) -> list[tuple[int, int, bytes]]:
        table = self._spark.read.parquet(str(self._folder / "table"))
        found = table.select("partition", "offset", "value").collect()
        return sorted((row[0], row[1], bytes(row[2])) for row in found)


def values_of(produced: list[Any]) -> list[tuple[int, int, bytes]]:
    return sorted((each.partition, each.offset, each.value) for each in produced)


@pytest.fixture
def stream(registered: Any, broker: Any, topics: Topics, tmp_path: Path) -> Stream:
    return Stream(registered, broker.bootstrap, topics.name, tmp_path)


def test_a_stream_reads_everything_once_over_restarts_and_new_partitions(
    stream: Stream, broker: Any, topics: Topics
) -> None:
    from confluent_kafka.admin import NewPartitions

    topic = topics.create()
    produced = topics.fill(topic, 100)
    stream.run(maxOffsetsPerTrigger="30")
    assert stream.values() == values_of(produced)
    produced += topics.fill(topic, 50, first=100)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_partitions([NewPartitions(topic, 3)]).values():
        future.result()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value=b"new", partition=2)
    assert producer.flush(90) == 0
    stream.run(maxOffsetsPerTrigger="30")
    assert stream.values() == sorted([*values_of(produced), (2, 0, b"new")])
    assert stream.run() == []


def test_batches_keep_to_the_limit(stream: Stream, topics: Topics) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 90)
    query = stream.start(
        {"processingTime": "0 seconds"}, maxOffsetsPerTrigger="40", limitFirstBatch="true"
    )
    try:
        query.processAllAvailable()
        sizes = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
        ends = json.loads(query.lastProgress["sources"][0]["endOffset"])
    finally:
        query.stop()
    assert sizes == [40, 40, 10]
    assert ends == {topic: {"0": 45, "1": 45}}
    assert stream.values() == values_of(produced)


def test_a_topic_made_anew_under_a_query_is_told(
    stream: Stream, broker: Any, topics: Topics
) -> None:
    topic = topics.create()
    topics.fill(topic, 20)
    stream.run()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_topics([topic]).values():
        future.result()
    topics.create()
    topics.fill(topic, 4)
    query = stream.start({"availableNow": True})
    with pytest.raises(Exception, match="ends at 2, before the 10 read so far"):
        query.awaitTermination(QUERY_SECONDS_MAX)


# --- Writing ---------------------------------------------------------------------------------


def test_both_sinks_write_the_same_records(registered: Any, broker: Any, topics: Topics) -> None:
    frame = registered.range(300).selectExpr(
        "IF(id % 4 = 0, NULL, CAST(id AS STRING)) AS key",
        "IF(id % 5 = 0, NULL, encode(id, 'UTF-8')) AS value",
        "IF(id % 3 = 0, NULL, array(struct('n' AS key, encode(id, 'UTF-8') AS value),"
        " struct('null' AS key, CAST(NULL AS BINARY) AS value))) AS headers",
        "IF(id % 4 = 0, CAST(id % 3 AS INT), NULL) AS partition",
    )
    written = {}
    for sink in ("kafka", "odradek"):
        topic = topics.create(f"-{sink}", PARTITIONS)
        writer = frame.write.format(sink).mode("append").option("topic", topic)
        writer.option("kafka.bootstrap.servers", broker.bootstrap).save()
        found = rows(registered, "kafka", broker.bootstrap, subscribe=topic, includeHeaders="true")
        written[sink] = sorted(
            (row["partition"], row["key"] or b"", row["value"] or b"", str(row["headers"]))
            for row in found
        )
    assert len(written["kafka"]) == 300
    assert written["odradek"] == written["kafka"]


@pytest.mark.parametrize("sink", ["kafka", "odradek"])
def test_both_sinks_write_records_up_to_javas_max_request_size(
    registered: Any, broker: Any, topics: Topics, sink: str
) -> None:
    """Above librdkafka's own default of 1,000,000; Java counts 61 bytes of a batch and more."""
    topic = topics.create("", 1)

    def write(size: int, **options: str) -> None:
        frame = registered.range(1).selectExpr(f"CAST(repeat('x', {size}) AS BINARY) AS value")
        writer = frame.write.format(sink).mode("append").option("topic", topic)
        writer.option("kafka.bootstrap.servers", broker.bootstrap).options(**options).save()

    write(MAX_REQUEST_SIZE - 100)
    with pytest.raises(Exception, match=r"(?i)RecordTooLarge|message size too large"):
        write(MAX_REQUEST_SIZE * 2)
    larger = ConfigEntry(
        "max.message.bytes",
        str(8 * MAX_REQUEST_SIZE),
        incremental_operation=AlterConfigOpType.SET,
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[larger])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(QUERY_SECONDS_MAX)
    write(MAX_REQUEST_SIZE * 5, **{"kafka.max.request.size": str(6 * MAX_REQUEST_SIZE)})
    found = rows(registered, "odradek", broker.bootstrap, subscribe=topic)
    assert [len(row["value"]) for row in found] == [MAX_REQUEST_SIZE - 100, MAX_REQUEST_SIZE * 5]


def test_rows_may_name_their_topic_and_the_option_wins(
    registered: Any, broker: Any, topics: Topics
) -> None:
    left, right = topics.create("-left"), topics.create("-right")
    frame = registered.createDataFrame([(left, "a"), (right, "b")], "topic STRING, value STRING")
    writer = frame.write.format("odradek").mode("append")
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap)
    writer.save()
    assert [record.value for record in topics.read(left, 1)] == [b"a"]
    writer.option("topic", right).save()
    assert sorted(record.value for record in topics.read(right, 3)) == [b"a", b"b", b"b"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("'v' AS value", "give option 'topic', or a column 'topic'"),
        ("'t' AS topic, 'k' AS key", "needs a column 'value'"),
        ("'t' AS topic, 1 AS value", "the column 'value' must be string or binary, not int"),
        ("'t' AS topic, 'v' AS value, 'one' AS partition", "the column 'partition' must be int"),
        ("CAST(NULL AS STRING) AS topic, 'v' AS value", "null in its column 'topic'"),
    ],
)
def test_a_frame_that_cannot_be_written_is_told(
    registered: Any, broker: Any, columns: str, told: str
) -> None:
    frame = registered.range(1).selectExpr(*columns.split(", "))
    writer = frame.write.format("odradek").mode("append")
    with pytest.raises(Exception, match=f"Error: .*{told}"):
        writer.option("kafka.bootstrap.servers", broker.bootstrap).save()


def test_a_stream_is_written_to_a_topic(
    registered: Any, broker: Any, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("-from"), topics.create("-to", PARTITIONS)
    produced = topics.fill(source, 60)
    query = (
        registered.readStream.format("odradek")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
        .writeStream.format("odradek")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_SECONDS_MAX)
    found = sorted((record.key, record.value) for record in topics.read(target, 60))
    assert found == sorted((each.key, each.value) for each in produced)
