"""Structured Streaming from Kafka topics: triggers, checkpoints and sinks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from .conftest import Produced, Topics

pytestmark = pytest.mark.spark

QUERY_SECONDS_MAX = 240


@pytest.fixture
def stream(spark: Any, topics: Topics) -> Any:
    """A streaming reader from a topic's beginning, to which a test adds its options."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("startingOffsets", "earliest")
    )


def run_available(frame: Any, checkpoint: Path, parquet: Path) -> Any:
    """Let a query read what is there now, to its end."""
    query = (
        frame.selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
        .writeStream.format("parquet")
        .option("path", str(parquet))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_SECONDS_MAX)
    return query


def values_in(spark: Any, parquet: Path) -> list[tuple[int, int, str]]:
    return sorted(tuple(row) for row in spark.read.parquet(str(parquet)).collect())


def values_of(produced: list[Produced]) -> list[tuple[int, int, str]]:
    return sorted((r.partition, r.offset, r.value.decode()) for r in produced)


def test_available_now_reads_all_in_batches_of_the_size_asked_for(
    spark: Any, stream: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 500)
    frame = stream.option("subscribe", topic).option("maxOffsetsPerTrigger", 200).load()
    query = run_available(frame, tmp_path / "checkpoint", tmp_path / "table")
    assert values_in(spark, tmp_path / "table") == values_of(produced)
    batches = [progress["numInputRows"] for progress in query.recentProgress]
    assert [rows for rows in batches if rows] == [200, 200, 100]


@pytest.mark.short
def test_a_restarted_query_goes_on_from_its_checkpoint(
    spark: Any, stream: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    before = topics.fill(topic, 60)
    frame = stream.option("subscribe", topic).load()
    run_available(frame, tmp_path / "checkpoint", tmp_path / "table")
    after = topics.fill(topic, 40, first=60)
    query = run_available(frame, tmp_path / "checkpoint", tmp_path / "table")
    assert values_in(spark, tmp_path / "table") == values_of(before + after)
    end_offsets = json.loads(query.lastProgress["sources"][0]["endOffset"])
    assert end_offsets == {topic: {"0": 50, "1": 50}}
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 40


def test_a_running_query_sees_records_that_come_later(
    spark: Any, stream: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    first = topics.fill(topic, 20)
    table = f"memory_{topic.replace('-', '_')}"
    query = (
        stream.option("subscribe", topic)
        .load()
        .selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
        .writeStream.format("memory")
        .queryName(table)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        query.processAllAvailable()
        assert sorted(map(tuple, spark.table(table).collect())) == values_of(first)
        later = topics.fill(topic, 30, first=20)
        query.processAllAvailable()
        assert sorted(map(tuple, spark.table(table).collect())) == values_of(first + later)
    finally:
        query.stop()


def test_foreach_batch_gets_every_record_in_one_batch(
    spark: Any, stream: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 120)
    batches: dict[int, list[str]] = {}

    def keep(frame: Any, batch: int) -> None:
        batches[batch] = [row[0] for row in frame.selectExpr("CAST(value AS STRING)").collect()]

    query = (
        stream.option("subscribe", topic)
        .option("maxOffsetsPerTrigger", 50)
        .load()
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_SECONDS_MAX)
    assert len(batches) == 3
    found = sorted(value for values in batches.values() for value in values)
    assert found == sorted(record.value.decode() for record in produced)


@pytest.mark.short
def test_records_go_from_topic_to_topic(stream: Any, topics: Topics, tmp_path: Path) -> None:
    source, target = topics.create("-from"), topics.create("-to", partitions=3)
    produced = topics.fill(source, 150)
    query = (
        stream.option("subscribe", source)
        .load()
        .selectExpr("key", "upper(CAST(value AS STRING)) AS value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_SECONDS_MAX)
    found = sorted((record.key, record.value) for record in topics.read(target, 150))
    assert found == sorted((record.key, record.value.upper()) for record in produced)
    assert sum(topics.end_offsets(target).values()) == 150


def test_deprecated_offset_fetching_streams_too(
    spark: Any, stream: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 80)
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(setting, "true")
    try:
        frame = stream.option("subscribe", topic).load()
        run_available(frame, tmp_path / "checkpoint", tmp_path / "table")
    finally:
        spark.conf.unset(setting)
    assert values_in(spark, tmp_path / "table") == values_of(produced)


def test_a_stream_from_a_missing_topic_fails_with_its_name(
    stream: Any, topics: Topics, tmp_path: Path
) -> None:
    frame = stream.option("subscribe", f"{topics.name}-missing").load()
    with pytest.raises(StreamingQueryException, match="UnknownTopicOrPartition"):
        run_available(frame, tmp_path / "checkpoint", tmp_path / "table")
