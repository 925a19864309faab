"""Topics to tables of Delta: each record once, as DuckDB sees it, whoever else writes and whatever
is killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from support.copied_flights import PARTITIONS, produce_flights
from support.duckdb_rows import delta_files, duckdb_rows
from support.pipeline_worker import PipelineRun

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.decoding import Schema
from odradek.spark_connector.installation import SparkInstallation
from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    MaintainSettings,
    ReplaySettings,
    TopicSource,
    TopicTarget,
    ValueSettings,
    archive_topics,
    maintain_table,
    replay_archive,
)
from odradek.spark_connector.pipelines.archive import delta
from odradek.spark_connector.pipelines.archive.delta import POSITION, delta_packages
from odradek.spark_connector.pipelines.archive.formats import table_at
from odradek.spark_connector.pipelines.archive.position import ArchivePosition

from .conftest import Produced, Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TEN_DAYS_S = 10 * 24 * 60 * 60


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "a lake"


def settings_of(topics: Topics, topic: str, lake: Path, **more: Any) -> ArchiveSettings:
    source = TopicSource(topics.bootstrap, (topic,), format="odradek")
    return ArchiveSettings(source, str(lake), "delta", **more)


def sql(spark: Any, settings: ArchiveSettings, statement: str) -> list[Any]:
    """What another program does to the table."""
    session = spark.newSession()
    table: Any = table_at(session, "delta", settings.location)
    rows: list[Any] = session.sql(statement.format(table=table.name)).collect()
    return rows


def assert_holds(lake: Path, produced: list[Produced]) -> None:
    """Each record is in the table once, with its key, value and time."""
    found = [row[1:] for row in duckdb_rows(delta_files(lake))]
    assert found == sorted(
        (each.partition, each.offset, each.timestamp_ms, each.key, each.value) for each in produced
    )


def test_a_table_has_each_record_once_and_gives_it_back(
    spark: Any, topics: Topics, lake: Path
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 40)
    settings = settings_of(topics, topic, lake, offsets_per_batch_max=30, gathers_days=True)
    progress: list[Any] = []
    first = archive_topics(spark, settings, progress.append)
    assert (first.rows, first.batches) == (40, 2)
    assert [(each.rows, each.lag) for each in progress] == [(0, 40), (30, 10), (40, 0)]
    assert_holds(lake, produced)
    assert len(delta_files(lake)) == 2, "each batch has one day of one topic"
    assert DeltaTable(str(lake)).metadata().partition_columns == ["topic", "date"]
    assert archive_topics(spark, settings).rows == 0
    produced += topics.fill(topic, 7, first=40)
    assert archive_topics(spark, settings).rows == 7
    assert_holds(lake, produced)

    target = TopicTarget(topics.bootstrap, prefix="again-")
    replay = ReplaySettings(str(lake), target, f"again-{topic}", table_format="delta")
    assert replay_archive(spark, replay).rows == 47
    assert [row[2:] for row in topics.read_committed(f"again-{topic}")] == [
        (each.key, each.value) for each in sorted(produced)
    ]


@pytest.mark.soak  # four minutes, and with Iceberg it is among the slow ones
def test_runs_at_once_double_nothing(spark: Any, topics: Topics, lake: Path) -> None:
    names = [topics.create("-a"), topics.create("-b")]
    produced = {name: topics.fill(name, 24) for name in names}
    failures: list[BaseException] = []

    def run(name: str) -> None:
        try:
            archive_topics(spark, settings_of(topics, name, lake, offsets_per_batch_max=8))
        except BaseException as error:
            failures.append(error)

    table_at(spark.newSession(), "delta", settings_of(topics, names[0], lake).location)
    threads = [threading.Thread(target=run, args=(name,)) for name in [*names, names[0]]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = duckdb_rows(delta_files(lake))
    for name in names:
        found = [(row.partition, row.offset) for row in rows if row.topic == name]
        assert found == sorted((each.partition, each.offset) for each in produced[name])
        assert archive_topics(spark, settings_of(topics, name, lake)).rows == 0


def test_a_batch_behind_which_another_was_committed_is_not(
    spark: Any, topics: Topics, lake: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    settings = settings_of(topics, topic, lake)
    archive_topics(spark, settings)
    table = table_at(spark.newSession(), "delta", settings.location)
    state = table.state()
    assert state.position is not None
    assert state.position.offsets == {(topic, 0): 5, (topic, 1): 5}
    again = table.read()
    later = ArchivePosition("mine", {(topic, 0): 9})
    assert table.append(again, later, state.predecessor, gathers=False) == 10
    late = ArchivePosition("late", {(topic, 0): 9})
    assert table.append(again, late, state.predecessor, gathers=False) is None
    assert len(duckdb_rows(delta_files(lake))) == 20


def test_an_archive_goes_on_in_a_table_that_others_change(
    spark: Any, topics: Topics, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 20)
    settings = settings_of(topics, topic, lake)
    archive_topics(spark, settings)
    before = DeltaTable(str(lake)).version()
    produced += topics.fill(topic, 10, first=20)
    archive_topics(spark, settings)
    sql(spark, settings, f"RESTORE TABLE {{table}} TO VERSION AS OF {before}")
    assert archive_topics(spark, settings).rows == 10
    assert_holds(lake, produced)

    moment = sql(spark, settings, "DESCRIBE HISTORY {table}")[-2]["timestamp"]
    sql(spark, settings, f"RESTORE TABLE {{table}} TO TIMESTAMP AS OF '{moment}'")
    assert archive_topics(spark, settings).rows == 10
    assert_holds(lake, produced)

    sql(spark, settings, "OPTIMIZE {table}")
    monkeypatch.setattr(delta, "COMMITS_AT_ONCE", 3)  # more than that say nothing of a position
    for number in range(3):
        changed = f"ALTER TABLE {{table}} SET TBLPROPERTIES ('number'='{number}')"
        sql(spark, settings, changed)
    sql(spark, settings, "DELETE FROM {table} WHERE offset >= 10")
    assert archive_topics(spark, settings).rows == 0, "what was deleted has come back"
    produced = [each for each in produced if each.offset < 10] + topics.fill(topic, 4, first=30)
    assert archive_topics(spark, settings).rows == 4
    assert_holds(lake, produced)

    # All entries that say where the archive was are gone: the records themselves say it.
    sql(spark, settings, "ALTER TABLE {table} SET TBLPROPERTIES ('number'='none')")
    other = DeltaTable(str(lake))
    other.create_checkpoint()
    for path in (lake / "_delta_log").glob("*.json"):
        if int(path.stem) < other.version():
            path.unlink()
            (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    produced += topics.fill(topic, 6, first=34)
    assert archive_topics(spark, settings).rows == 6
    assert_holds(lake, produced)


def test_what_cannot_be_is_refused_in_a_sentence(spark: Any, topics: Topics, lake: Path) -> None:
    topic = topics.create()
    topics.fill(topic, 4)
    settings = settings_of(topics, topic, lake)
    for wrong, sentence in (
        (settings._replace(partition_by=("days(timestamp)",)), "cannot be partitioned by 'days"),
        (settings._replace(partition_by=("key",)), "cannot be partitioned by 'key'"),
        (settings._replace(table="a.b"), "only a table of Iceberg has a catalog"),
        (settings._replace(checkpoint="x"), "needs no checkpoint; leave it out"),
    ):
        with pytest.raises(SparkConnectorError, match=sentence) as told:
            archive_topics(spark, wrong)
        assert len(str(told.value).splitlines()) == 1
    maintain = MaintainSettings(settings.location, table_format="delta")
    for settings_of_it, sentence in (
        (maintain, "the table in .* is not there"),
        (maintain._replace(orphan_days=0.5), "left for a day at least"),
        (maintain._replace(table_format="hudi"), "no tables of 'hudi'; they are of iceberg or"),
    ):
        with pytest.raises(SparkConnectorError, match=sentence):
            maintain_table(spark, settings_of_it)

    archive_topics(spark, settings)
    table = table_at(spark.newSession(), "delta", settings.location)
    for text, sentence in (
        ('{"version": 7}', r"version 7; this one knows 1\): archive with that one"),
        ("whatever", "which is no position; roll the table back"),
    ):
        writer = table.read().limit(0).write.format("delta").mode("append")
        writer = writer.option("txnAppId", text).option("txnVersion", 1)
        writer.option("userMetadata", POSITION + text).save(str(lake))
        with pytest.raises(SparkConnectorError, match=sentence):
            archive_topics(spark, settings)
    assert len(duckdb_rows(delta_files(lake))) == 4


@pytest.mark.soak  # ten minutes beside others, and the commands are tried with Iceberg
def test_the_commands_archive_and_maintain_a_table(topics: Topics, lake: Path) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 6)

    def odradek(*arguments: str) -> str:
        command = [sys.executable, "-m", "odradek", "spark", *arguments]
        done = subprocess.run(
            [*command, "--format", "delta", "--master", "local[1]"],
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    server = ("-b", topics.bootstrap, "--source", "odradek")
    odradek("archive", str(lake), topic, *server, "--per-batch", "3")
    assert_holds(lake, produced)
    lines = odradek("maintain", str(lake), "--min-files", "2", "--json").splitlines()
    done = [json.loads(line) for line in lines]
    assert [each["step"] for each in done] == ["compacting", "removing old files"]
    assert len(delta_files(lake)) == 1
    assert_holds(lake, produced)


def test_the_jar_is_the_one_of_the_series_of_spark() -> None:
    for spark_version, package in (
        ("4.0.0", "io.delta:delta-spark_2.13:4.0.0"),
        ("4.1.2", "io.delta:delta-spark_4.1_2.13:4.1.0"),
    ):
        assert delta_packages(SparkInstallation(Path(), spark_version, "2.13")) == [package]


def test_fields_that_come_become_columns_and_numbers_wider(
    spark: Any, topics: Topics, lake: Path
) -> None:
    topic = topics.create(partitions=1)
    producer = Producer({"bootstrap.servers": topics.bootstrap})

    def send(*values: dict[str, Any]) -> None:
        for value in values:
            producer.produce(topic, json.dumps(value).encode(), partition=0)
        assert producer.flush(90) == 0

    def shaped(**properties: Any) -> ArchiveSettings:
        schema = {"type": "object", "title": "Order", "properties": properties}
        values = ValueSettings(None, Schema("JSON", json.dumps(schema)))
        return settings_of(topics, topic, lake, values=values)

    whole, text = {"type": "integer"}, {"type": "string"}
    lines = {"type": "array", "items": {"type": "object", "properties": {"n": whole}}}
    more = {"type": "array", "items": {"type": "object", "properties": {"n": whole, "s": text}}}
    send({"id": 1, "lines": [{"n": 2}]})
    assert archive_topics(spark, shaped(id=whole, lines=lines)).rows == 1
    send({"id": 2, "at": "now", "lines": [{"n": 3, "s": "x"}]})
    assert archive_topics(spark, shaped(id=whole, at=text, lines=more)).rows == 1
    table = table_at(spark.newSession(), "delta", settings_of(topics, topic, lake).location)
    decoded = [row["decoded"].asDict(True) for row in table.read().orderBy("offset").collect()]
    assert decoded == [
        {"id": 1, "at": None, "lines": [{"n": 2, "s": None}]},
        {"id": 2, "at": "now", "lines": [{"n": 3, "s": "x"}]},
    ]
    send({"id": "three"})
    with pytest.raises(SparkConnectorError, match=r"decoded\.id of .* is bigint, but values have"):
        archive_topics(spark, shaped(id=text))
    # deltalake does not know the feature that a wider number needs, and it is not there before.
    assert len(duckdb_rows(delta_files(lake))) == 2
    sql(spark, settings_of(topics, topic, lake), "ALTER TABLE {table} ADD COLUMN narrow INT")
    table.alter("ALTER COLUMN `narrow` TYPE bigint")
    assert table.read().schema["narrow"].dataType.simpleString() == "bigint"
    assert archive_topics(spark, settings_of(topics, topic, lake)).rows == 1


def test_small_files_and_old_ones_go_and_no_record_does(
    spark: Any, topics: Topics, lake: Path
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 24)
    settings = settings_of(topics, topic, lake, offsets_per_batch_max=8)
    assert archive_topics(spark, settings).batches == 3
    before = delta_files(lake)
    assert len(before) >= 3
    folder = Path(before[0]).parent
    old, young = folder / "lost-old.parquet", folder / "lost-young.parquet"
    for path in (old, young):
        path.write_bytes(b"of a run that was killed")
    ago = time.time() - TEN_DAYS_S
    os.utime(old, (ago, ago))

    maintain = MaintainSettings(
        settings.location, files_min=2, keep_days=0, orphan_days=1, table_format="delta"
    )
    planned = maintain_table(spark, maintain._replace(only_plans=True))
    assert [tuple(each) for each in planned] == [
        ("compacting", f"{len(before)} small files of 24 records in 1 partitions"),
        ("removing old files", "1 files"),
    ]
    assert (delta_files(lake), old.exists()) == (before, True)
    none = maintain._replace(files_min=len(before) + 1, only_plans=True)
    assert maintain_table(spark, none)[0].outcome.startswith("0 small files")

    steps: list[Any] = []
    done = maintain_table(spark, maintain, steps.append)
    assert [tuple(each) for each in done] == [
        ("compacting", f"{len(before)} files into 1"),
        ("removing old files", "1 files"),
    ]
    assert list(dict.fromkeys(each.step for each in steps)) == [each.step for each in done]
    assert len(delta_files(lake)) == 1
    assert (old.exists(), young.exists()) == (False, True)
    assert all(Path(each).exists() for each in before), "versions of today can be read"
    commits = DeltaTable(str(lake)).history(1)
    assert str(commits[0]["userMetadata"]).startswith(POSITION)
    produced += topics.fill(topic, 4, first=24)
    assert archive_topics(spark, settings).rows == 4
    assert_holds(lake, produced)


@pytest.mark.timeout(900)
def test_runs_that_were_killed_leave_each_record_once(
    spark: Any, topics: Topics, lake: Path, tmp_path: Path
) -> None:
    """With transactions, aborted ones too, by Spark's own source; then a maintenance."""
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 4_000)
    rng = random.Random(topic)
    settings = {
        "bootstrap": topics.bootstrap,
        "topics": [topic],
        "folder": str(lake),
        "format": "delta",
        "step": 400,
    }

    def files() -> int:
        return len(list(lake.rglob("*.parquet")))

    enough = rng.randrange(2, 15)  # of some 27: it is to be killed before it is done
    with PipelineRun("archive", settings, tmp_path / "worker.log") as run:
        assert run.kill_when(lambda: files() >= enough)
    with PipelineRun("archive", {**settings, "step": 4_000}, tmp_path / "worker.log") as run:
        run.finish()
    read = topics.read_committed(topic)
    assert len(read) == count

    def found() -> list[Any]:
        rows = duckdb_rows(delta_files(lake))
        return [(row.partition, row.offset, row.key, row.value) for row in rows]

    assert found() == read
    before, known = delta_files(lake), files()
    with PipelineRun("maintain", settings, tmp_path / "worker.log") as run:
        assert run.kill_when(lambda: files() > known + 2)
    assert found() == read
    location = settings_of(topics, topic, lake).location
    maintain_table(spark, MaintainSettings(location, files_min=2, table_format="delta"))
    assert found() == read
    days = {Path(each).parent for each in before}
    assert len(delta_files(lake)) == len(days) < len(before)
