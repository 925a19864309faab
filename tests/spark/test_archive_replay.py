"""Topics to a lake and back: the copy is the original, whenever a run was killed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyarrow import parquet
from support.copied_flights import (
    PARTITIONS,
    TopicEnd,
    assert_same,
    placed,
    produce_flights,
    rows,
)
from support.pipeline_worker import PipelineRun

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    ReplaySettings,
    TopicSource,
    TopicTarget,
    archive_topics,
    read_archive,
    replay_archive,
)

from .conftest import START_MS, Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DAY_MS = 24 * 60 * 60 * 1000


def part_files(folder: Path) -> list[Path]:
    return list(folder.glob("topic=*/date=*/part-*.parquet"))


def test_an_archive_is_the_original(spark: Any, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 6_000)
    source = TopicSource(topics.bootstrap, (topic,))
    lake = str(tmp_path / "a lake")
    progress: list[Any] = []
    settings = ArchiveSettings(source, lake, offsets_per_batch_max=2_000)
    result = archive_topics(spark, settings, progress.append)
    assert (result.rows, result.removed_files) == (count, 0)
    assert result.batches >= 3
    assert (progress[-1].rows, progress[-1].lag) == (count, 0)
    assert_same(placed(read_archive(spark, lake)), rows(spark, topics.bootstrap, topic), count)


def test_a_replayed_archive_is_the_original(spark: Any, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 6_000)
    lake = str(tmp_path / "a lake")
    archive_topics(spark, ArchiveSettings(TopicSource(topics.bootstrap, (topic,)), lake))
    progress: list[Any] = []
    replay = ReplaySettings(
        lake, TopicTarget(topics.bootstrap, prefix="copy-"), topic, records_per_transaction=500
    )
    copied = replay_archive(spark, replay, progress.append)
    assert (copied.rows, copied.skipped) == (count, 0)
    assert (progress[-1].rows, progress[-1].lag) == (count, 0)
    copy = f"copy-{topic}"
    assert_same(rows(spark, topics.bootstrap, copy), rows(spark, topics.bootstrap, topic), count)
    assert len(topics.end_offsets(copy)) == PARTITIONS
    again = replay_archive(spark, replay)
    assert (again.rows, again.skipped) == (0, count)


def test_an_archive_holds_offsets_days_and_topics_that_look_like_numbers(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    number = str(random.Random(topics.name).randrange(10**9))
    Topics(topics.bootstrap, number).create()
    produced = Topics(topics.bootstrap, number).fill(number, 40)
    lake = str(tmp_path)
    archive_topics(spark, ArchiveSettings(TopicSource(topics.bootstrap, (number,)), lake))
    frame = read_archive(spark, lake)
    found = frame.select("topic", "partition", "offset", "value", "date").collect()
    assert sorted((r["topic"], r["partition"], r["offset"], bytes(r["value"])) for r in found) == (
        sorted((number, each.partition, each.offset, each.value) for each in produced)
    )
    assert {str(row["date"]) for row in found} == {"2013-06-01"}
    # Another reader sees the same, in Parquet's own type for times.
    table = pd.concat(pd.read_parquet(path) for path in part_files(tmp_path))
    assert sorted(table["timestamp"].astype("int64") // 1000) == sorted(
        each.timestamp_ms for each in produced
    )


@pytest.mark.parametrize("source_format", ["kafka", "odradek"])
def test_a_later_run_archives_only_what_came_since(
    spark: Any, topics: Topics, tmp_path: Path, source_format: str
) -> None:
    topic = topics.create()
    topics.fill(topic, 30)
    source = TopicSource(topics.bootstrap, (topic,), format=source_format)
    settings = ArchiveSettings(source, str(tmp_path))
    assert archive_topics(spark, settings).rows == 30
    topics.fill(topic, 20, first=30)
    assert archive_topics(spark, settings).rows == 20
    assert read_archive(spark, str(tmp_path)).count() == 50


def test_files_that_no_batch_committed_are_removed(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 30)
    settings = ArchiveSettings(TopicSource(topics.bootstrap, (topic,)), str(tmp_path))
    archive_topics(spark, settings)
    kept = part_files(tmp_path)
    stray = kept[0].with_name("part-00000-of-a-batch-that-was-killed.c000.snappy.parquet")
    stray.write_bytes(kept[0].read_bytes())
    assert archive_topics(spark, settings).removed_files == 1
    assert sorted(part_files(tmp_path)) == sorted(kept)


def test_gathered_days_have_one_file_each(spark: Any, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(partitions=PARTITIONS)
    days = 4
    producer = Producer({"bootstrap.servers": topics.bootstrap})
    for number in range(60):
        timestamp_ms = START_MS + number % days * DAY_MS
        producer.produce(topic, b"v", partition=number % PARTITIONS, timestamp=timestamp_ms)
    assert producer.flush(90) == 0
    source = TopicSource(topics.bootstrap, (topic,))
    archive_topics(spark, ArchiveSettings(source, str(tmp_path), gathers_days=True))
    assert len(part_files(tmp_path)) == days
    assert len({path.parent for path in part_files(tmp_path)}) == days
    archived = placed(read_archive(spark, str(tmp_path)))
    assert_same(archived, rows(spark, topics.bootstrap, topic), 60)


def test_an_archive_without_its_checkpoint_is_refused(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    source, lake = TopicSource(topics.bootstrap, (topic,)), str(tmp_path / "lake")
    first = ArchiveSettings(source, lake, checkpoint=str(tmp_path / "first"))
    archive_topics(spark, first)
    with pytest.raises(SparkConnectorError, match="name the checkpoint that belongs to it"):
        archive_topics(spark, first._replace(checkpoint=str(tmp_path / "second")))
    with pytest.raises(SparkConnectorError, match="remove the checkpoint"):
        archive_topics(spark, first._replace(folder=str(tmp_path / "other")))


def test_a_checkpoint_of_another_version_is_told(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    settings = ArchiveSettings(TopicSource(topics.bootstrap, (topic,)), str(tmp_path))
    archive_topics(spark, settings)
    offsets = tmp_path / "_checkpoint" / "offsets"
    (offsets / "0").write_text((offsets / "0").read_text().replace("v1", "v7", 1))
    (offsets / ".0.crc").unlink()
    topics.fill(topic, 4, first=10)
    with pytest.raises(SparkConnectorError, match=r"version.* v7") as told:
        archive_topics(spark, settings)
    assert len(str(told.value).splitlines()) == 1
    assert read_archive(spark, str(tmp_path)).count() == 10


def test_a_topic_with_records_of_others_is_not_replayed_to(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    archive_topics(spark, ArchiveSettings(TopicSource(topics.bootstrap, (topic,)), str(tmp_path)))
    with pytest.raises(SparkConnectorError, match="no position of this job"):
        replay_archive(spark, ReplaySettings(str(tmp_path), TopicTarget(topics.bootstrap), topic))
    assert sum(topics.end_offsets(topic).values()) == 10


def test_a_job_does_not_go_on_with_another_archive(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    source = TopicSource(topics.bootstrap, (topic,))
    archive_topics(spark, ArchiveSettings(source, str(tmp_path / "one")))
    target = TopicTarget(topics.bootstrap, prefix="once-")
    replay_archive(spark, ReplaySettings(str(tmp_path / "one"), target, topic))
    producer = Producer({"bootstrap.servers": topics.bootstrap})
    for partition in range(2):
        producer.produce(topic, b"more", partition=partition)
    producer.flush(90)
    admin = AdminClient({"bootstrap.servers": topics.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        future.result(90)
    archive_topics(spark, ArchiveSettings(source, str(tmp_path / "two")))
    with pytest.raises(SparkConnectorError, match="it is another archive"):
        replay_archive(spark, ReplaySettings(str(tmp_path / "two"), target, topic))


def test_a_topic_that_would_delete_old_records_is_not_replayed_to(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    from kafka.admin import KafkaAdminClient

    topic = topics.create()
    topics.fill(topic, 10)
    archive_topics(spark, ArchiveSettings(TopicSource(topics.bootstrap, (topic,)), str(tmp_path)))
    with KafkaAdminClient(bootstrap_servers=topics.bootstrap) as admin:
        week = {"num_partitions": 2, "configs": {"retention.ms": "604800000"}}
        admin.create_topics({f"week-{topic}": week}, wait_for_metadata=True)
    target = TopicTarget(topics.bootstrap, prefix="week-")
    with pytest.raises(SparkConnectorError, match=r"retention\.ms"):
        replay_archive(spark, ReplaySettings(str(tmp_path), target, topic))


# --- Killed ------------------------------------------------------------------------------------


class Killed:
    """Runs of archive and replay that are killed as they work."""

    def __init__(self, spark: Any, bootstrap: str, topic: str, folder: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.topic = topic
        self.lake = folder / "lake"
        self._log = folder / "worker.log"
        self._chance = random.Random(topic)

    def _run(self, pipeline: str, step: int) -> PipelineRun:
        settings = {
            "bootstrap": self.bootstrap,
            "topics": [self.topic],
            "folder": str(self.lake),
            "prefix": "copy-",
            "step": step,
        }
        return PipelineRun(pipeline, settings, self._log)

    def kill_archive(self, step: int) -> bool:
        """When some more files are there, of a batch that is committed or is not."""
        files = len(part_files(self.lake)) + self._chance.randrange(1, 12)
        with self._run("archive", step) as run:
            return run.kill_when(lambda: len(part_files(self.lake)) >= files)

    def kill_replay(self, step: int, within: int) -> bool:
        """When some more records are there, committed or not."""
        reached = TopicEnd(self.bootstrap, f"copy-{self.topic}")
        reached()
        end = reached() + self._chance.randrange(1, within)
        with self._run("replay", step) as run:
            return run.kill_when(lambda: reached() >= end)

    def finish_archive(self, count: int) -> None:
        """Let a last run end, and compare."""
        source = TopicSource(self.bootstrap, (self.topic,))
        archive_topics(self.spark, ArchiveSettings(source, str(self.lake)))
        archived = placed(read_archive(self.spark, str(self.lake)))
        assert_same(archived, rows(self.spark, self.bootstrap, self.topic), count)
        plain = sum(parquet.read_metadata(path).num_rows for path in part_files(self.lake))
        assert plain == count, "a reader that knows of no log sees other records"

    def finish_replay(self, count: int) -> None:
        """Let a last run end, and compare."""
        target = TopicTarget(self.bootstrap, prefix="copy-")
        result = replay_archive(self.spark, ReplaySettings(str(self.lake), target))
        assert result.rows + result.skipped == count
        copy = rows(self.spark, self.bootstrap, f"copy-{self.topic}")
        assert_same(copy, rows(self.spark, self.bootstrap, self.topic), count)


@pytest.mark.timeout(900)
def test_an_archive_that_is_killed_neither_loses_nor_doubles_a_record(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 12_000)
    killed = Killed(spark, topics.bootstrap, topic, tmp_path)
    # Small steps: what is left at the moment of a kill takes seconds, which a late look needs.
    assert killed.kill_archive(step=400)
    killed.finish_archive(count)


@pytest.mark.timeout(900)
def test_a_replay_that_is_killed_neither_loses_nor_doubles_a_record(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 6_000)
    killed = Killed(spark, topics.bootstrap, topic, tmp_path)
    killed.finish_archive(count)
    assert killed.kill_replay(step=10, within=1_500)
    killed.finish_replay(count)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_a_year_of_flights_survives_ten_kills_each_way(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 336_776)
    killed = Killed(spark, topics.bootstrap, topic, tmp_path)
    assert all(killed.kill_archive(step=20_000) for _ in range(10))
    killed.finish_archive(count)
    assert all(killed.kill_replay(step=1_000, within=25_000) for _ in range(10))
    killed.finish_replay(count)


@pytest.mark.timeout(900)
def test_an_iceberg_table_replays_to_the_original_though_its_archive_was_killed(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 12_000)
    data = tmp_path / "lake" / "topics" / "records" / "data"
    settings = {
        "bootstrap": topics.bootstrap,
        "topics": [topic],
        "folder": str(tmp_path / "lake"),
        "format": "iceberg",
        "prefix": "copy-",
        "step": 1_000,
    }
    with PipelineRun("archive", settings, tmp_path / "worker.log") as run:
        assert run.kill_when(lambda: len(list(data.glob("*/*/*.parquet"))) > 3)
    source, target = (
        TopicSource(topics.bootstrap, (topic,)),
        TopicTarget(topics.bootstrap, prefix="copy-"),
    )
    lake = str(tmp_path / "lake")
    archive_topics(spark, ArchiveSettings(source, lake, "iceberg", offsets_per_batch_max=4_000))
    replay = ReplaySettings(lake, target, table_format="iceberg", records_per_transaction=1_000)
    assert replay_archive(spark, replay).rows == count
    copy = rows(spark, topics.bootstrap, f"copy-{topic}")
    assert_same(copy, rows(spark, topics.bootstrap, topic), count)
