"""Spark's Kafka source in batch mode: every way to say what is to be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import START_MS, STEP_MS, Produced, Topics

pytestmark = pytest.mark.spark


def rows_of(frame: Any) -> set[Produced]:
    """The frame's rows; fails where the frame has one twice."""
    rows = frame.selectExpr(
        "partition", "offset", "unix_millis(timestamp) AS timestamp_ms", "key", "value"
    ).collect()
    found = [Produced(r[0], r[1], r[2], bytes(r[3]), bytes(r[4])) for r in rows]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.short
def test_earliest_to_latest_reads_every_record_once(source: Any, topics: Topics) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 500)
    assert rows_of(source.option("subscribe", topic).load()) == set(produced)


@pytest.mark.short
def test_explicit_offsets_cut_both_ends(source: Any, topics: Topics) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 100)
    frame = (
        source.option("subscribe", topic)
        .option("startingOffsets", json.dumps({topic: {"0": 10, "1": -2}}))
        .option("endingOffsets", json.dumps({topic: {"0": 20, "1": -1}}))
        .load()
    )
    assert rows_of(frame) == {
        record for record in produced if record.partition == 1 or 10 <= record.offset < 20
    }


def test_starting_offsets_by_timestamp_start_at_the_first_record_as_late(
    source: Any, topics: Topics
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 100)
    # Between two records, so that the later of them is the first to be read.
    starts = {"0": START_MS + 40 * STEP_MS - 1, "1": START_MS + 71 * STEP_MS}
    frame = (
        source.option("subscribe", topic)
        .option("startingOffsetsByTimestamp", json.dumps({topic: starts}))
        .load()
    )
    assert rows_of(frame) == {
        record for record in produced if record.timestamp_ms >= starts[str(record.partition)]
    }


def test_starting_and_ending_timestamps_hold_for_all_partitions(
    source: Any, topics: Topics
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 100)
    start, end = START_MS + 25 * STEP_MS, START_MS + 60 * STEP_MS
    frame = (
        source.option("subscribe", topic)
        .option("startingTimestamp", str(start))
        .option("endingTimestamp", str(end))
        .load()
    )
    assert rows_of(frame) == {r for r in produced if start <= r.timestamp_ms < end}


def test_a_pattern_reads_the_topics_it_matches(source: Any, topics: Topics) -> None:
    red, blue, other = topics.create("-red"), topics.create("-blue"), topics.create("-x")
    counts = {red: 30, blue: 20, other: 10}
    for topic, count in counts.items():
        topics.fill(topic, count)
    frame = source.option("subscribePattern", f"{topics.name}-(red|blue)").load()
    found = {row["topic"]: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert found == {red: 30, blue: 20}


def test_assign_reads_only_the_named_partitions(source: Any, topics: Topics) -> None:
    topic = topics.create(partitions=3)
    produced = topics.fill(topic, 90, partitions=3)
    frame = source.option("assign", json.dumps({topic: [0, 2]})).load()
    assert rows_of(frame) == {record for record in produced if record.partition != 1}


def test_min_partitions_splits_topic_partitions(source: Any, topics: Topics) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 400)
    frame = source.option("subscribe", topic).option("minPartitions", "6").load()
    assert rows_of(frame) == set(produced)
    tasks = frame.selectExpr("spark_partition_id() AS task").distinct().count()
    assert tasks == 6


def test_headers_come_with_the_records_when_asked_for(source: Any, topics: Topics) -> None:
    topic = topics.create(partitions=1)
    topics.fill(topic, 2, partitions=1, headers=[("source", b"test"), ("empty", b"")])
    topics.fill(topic, 1, partitions=1, first=2)
    frame = source.option("subscribe", topic).option("includeHeaders", "true").load()
    found = [
        row["headers"] and [(header["key"], bytes(header["value"])) for header in row["headers"]]
        for row in frame.orderBy("offset").collect()
    ]
    assert found == [[("source", b"test"), ("empty", b"")]] * 2 + [None]


def test_read_committed_reads_records_without_a_transaction(source: Any, topics: Topics) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 100)
    frame = source.option("subscribe", topic).option("kafka.isolation.level", "read_committed")
    assert rows_of(frame.load()) == set(produced)


def test_deprecated_offset_fetching_reads_through_a_consumer_group(
    spark: Any, source: Any, topics: Topics
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 100)
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(setting, "true")
    try:
        assert rows_of(source.option("subscribe", topic).load()) == set(produced)
    finally:
        spark.conf.unset(setting)


def test_a_missing_topic_is_named_as_unknown(source: Any, topics: Topics) -> None:
    missing = f"{topics.name}-missing"
    with pytest.raises(Exception, match="UnknownTopicOrPartition"):
        source.option("subscribe", missing).load().count()
