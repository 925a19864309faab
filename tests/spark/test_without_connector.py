"""What is done without a JAR: on the oldest Spark that is supported, and on the newest as well.

`make test-newest-spark` runs it, and what stands in `test_odradek_source.py` but for the
comparisons with Spark's own source, on the PySpark of constraints-newest-spark.txt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.spark_streams import AVAILABLE_NOW

from odradek.spark_connector import offsets_behind_latest, register
from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    AuditSettings,
    MirrorSettings,
    ReplaySettings,
    TopicSource,
    TopicTarget,
    archive_topics,
    audit_topics,
    mirror_topics,
    read_archive,
    replay_archive,
)

from .conftest import Produced, Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
COUNT = 300
COMMAND_SECONDS_MAX = 400
QUERY_SECONDS_MAX = 240


def version_of(spark: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in spark.version.split(".")[:2])


def read(spark: Any, topics: Topics, topic: str, **options: str) -> Any:
    """One DataFrame of a topic."""
    reader = register(spark).read.format("odradek").options(**options)
    return reader.option("kafka.bootstrap.servers", topics.bootstrap).option("subscribe", topic)


def counts(frame: Any) -> tuple[int, int, int]:
    """All, what a filter leaves, and all again."""
    return frame.count(), frame.filter("partition = 1 and offset < 10").count(), frame.count()


def test_a_frame_is_counted_filtered_and_counted_with_default_settings(
    spark: Any, broker: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, COUNT)
    assert counts(read(spark, topics, topic).load()) == (COUNT, 10, COUNT)
    logs = spark.read.format("odradek-log").option("subscribe", topic)
    assert counts(logs.load(str(broker.data_dir))) == (COUNT, 10, COUNT)


def test_filters_are_pushed_down_only_where_setting_and_option_say_so(
    spark: Any, topics: Topics
) -> None:
    topic = topics.create()
    topics.fill(topic, COUNT)
    pushing = read(spark, topics, topic, pushFilters="true").load()
    if version_of(spark) < (4, 1):
        assert counts(pushing) == (COUNT, 10, COUNT)  # it knows of no push-down
        return
    with pytest.raises(Exception, match=f"DATA_SOURCE_PUSHDOWN_DISABLED.*{PUSH_DOWN}"):
        pushing.count()
    spark.conf.set(PUSH_DOWN, "true")
    try:
        assert counts(read(spark, topics, topic).load()) == (COUNT, 10, COUNT)
        filtered = read(spark, topics, topic, pushFilters="true").load()
        assert filtered.filter("partition = 1 and offset < 10").count() == 10
        # The fault of Spark's that the option warns of. Once this is 300, Spark has mended it:
        # take the warning out of kafka_source/filters.py and docs/spark.md, and push by default.
        pushing = read(spark, topics, topic, pushFilters="true").load()
        assert counts(pushing) == (COUNT, 10, 10)
    finally:
        spark.conf.set(PUSH_DOWN, "false")


def as_written(produced: list[Produced]) -> list[tuple[int, int, bytes, bytes]]:
    return sorted((each.partition, each.timestamp_ms, each.key, each.value) for each in produced)


def as_read(topics: Topics, topic: str, count: int) -> list[tuple[int, int, bytes, bytes]]:
    found = topics.read(topic, count)
    return sorted((each.partition, each.timestamp, each.key, each.value) for each in found)


def test_the_pipelines_work_without_the_connector(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, COUNT)
    source = TopicSource(topics.bootstrap, (topic,), format="odradek")
    lake = str(tmp_path / "lake")
    settings = ArchiveSettings(source, lake, offsets_per_batch_max=100)
    assert archive_topics(spark, settings).rows == COUNT
    assert archive_topics(spark, settings).rows == 0
    archived = read_archive(spark, lake).select("partition", "offset", "value").collect()
    assert sorted((row[0], row[1], bytes(row[2])) for row in archived) == sorted(
        (each.partition, each.offset, each.value) for each in produced
    )
    target = TopicTarget(topics.bootstrap, prefix="again-")
    assert replay_archive(spark, ReplaySettings(lake, target, topic)).rows == COUNT
    assert as_read(topics, f"again-{topic}", COUNT) == as_written(produced)
    target = TopicTarget(topics.bootstrap, prefix="mirrored-")
    assert mirror_topics(spark, MirrorSettings(source, target, topic)).rows == COUNT
    assert as_read(topics, f"mirrored-{topic}", COUNT) == as_written(produced)
    report = audit_topics(spark, AuditSettings(source))
    assert report.records == COUNT


# --- What commands fetch -----------------------------------------------------------------------


@pytest.mark.slow  # four commands, each of which starts a Spark of its own
@pytest.mark.timeout(4 * COMMAND_SECONDS_MAX)
def test_the_commands_fetch_no_jar(topics: Topics, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()

    def odradek(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "odradek", "spark", command, *arguments, "--master", "local[1]"],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        )
        assert done.returncode == 0, done.stderr
        return done

    topic = topics.create()
    produced = topics.fill(topic, COUNT)
    lake = str(tmp_path / "lake")
    there = ("-b", topics.bootstrap)
    ours = ("--source", "odradek")
    archived = odradek("archive", lake, topic, *there, *ours)
    assert f"archived {COUNT} records" in archived.stderr
    replayed = odradek("replay", lake, *there, "--prefix", "again-", "--job", topic)
    assert f"replayed {COUNT} records" in replayed.stderr
    assert as_read(topics, f"again-{topic}", COUNT) == as_written(produced)
    between = ("--from", topics.bootstrap, *there, "--prefix", "mirrored-", "--job", f"{topic}-m")
    mirrored = odradek("mirror", topic, *between, *ours)
    assert f"mirrored {COUNT} records" in mirrored.stderr
    assert as_read(topics, f"mirrored-{topic}", COUNT) == as_written(produced)
    report = json.loads(odradek("audit", topic, *there, *ours, "--json").stdout)
    assert (report["clean"], report["records"]) == (True, COUNT)
    assert not (cache / "odradek").exists()


# --- What Spark asks of a source in Python, and what it does not yet ---------------------------


def test_batches_keep_to_their_limit_and_tell_how_far_they_are_behind(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    """Until 4.2 a source is told of no limit under AvailableNow, and cannot report its end."""
    topic = topics.create()
    topics.fill(topic, 90)
    records = (
        register(spark)
        .readStream.format("odradek")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="40")
        .load()
    )
    writer = records.writeStream.format("noop").trigger(**AVAILABLE_NOW)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert query.awaitTermination(QUERY_SECONDS_MAX)
    batches = [each for each in query.recentProgress if each["numInputRows"]]
    sizes = [each["numInputRows"] for each in batches]
    behind = [offsets_behind_latest(each["sources"][0]) for each in batches]
    if version_of(spark) < (4, 2):
        assert (sizes, behind) == ([90], [(0, 0, 0, 0)])
    else:
        assert sizes == [40, 40, 10]
        assert behind == [(50, 25, 25, 25), (10, 5, 5, 5), (0, 0, 0, 0)]
    # Spark asks no source in Python for metrics: Kafka's own says all this there by itself. Once
    # there are some, give them, and take `offsets_behind_latest` out of docs/spark.md.
    assert not any(each["sources"][0]["metrics"] for each in batches)
    # Nor for a description: that of Kafka's own is KafkaV2[Subscribe[topic]].
    assert all("PythonMicroBatchStream" in each["sources"][0]["description"] for each in batches)


def test_spark_prunes_no_columns_of_a_source_in_python(spark: Any, topics: Topics) -> None:
    """What a query does not use is read all the same, unless a schema leaves it out."""
    topic = topics.create()
    topics.fill(topic, 1)

    def columns_read(reader: Any) -> set[str]:
        plan = reader.load().select("offset")._jdf.queryExecution().executedPlan()
        (scan,) = [line for line in plan.toString().splitlines() if "BatchScan" in line]
        return {name for name in ("value", "offset", "timestamp") if f"{name}#" in scan}

    # Once this is {"offset"} alone, Spark prunes: have the readers make what it asks for, and take
    # the paragraph on it out of docs/spark.md.
    assert columns_read(read(spark, topics, topic)) == {"value", "offset", "timestamp"}
    narrow = read(spark, topics, topic).schema("offset BIGINT")
    assert columns_read(narrow) == {"offset"}


def test_spark_has_no_real_time_mode_for_sources_in_python(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 1)
    reader = register(spark).readStream.format("odradek").option("subscribe", topic)
    records = reader.option("kafka.bootstrap.servers", topics.bootstrap).load()
    writer = records.writeStream.format("console").outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    if version_of(spark) < (4, 1):
        with pytest.raises(TypeError, match="realTime"):
            writer.trigger(realTime="5 minutes")
        return
    # Once such a query runs, Spark lets a source in Python have it: docs/spark.md tells of it.
    query = writer.trigger(realTime="5 minutes").start()
    with pytest.raises(Exception, match=r"STREAMING_REAL_TIME_MODE\.INPUT_STREAM_NOT_SUPPORTED"):
        query.awaitTermination(QUERY_SECONDS_MAX)
