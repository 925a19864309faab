"""Tables of archives kept in order: what is in them stays, whatever is killed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.iceberg_catalogs import Catalog
from support.pipeline_worker import PipelineRun

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    MaintainSettings,
    TopicSource,
    archive_topics,
    maintain_table,
)
from odradek.spark_connector.pipelines.archive.formats import table_at

from .conftest import Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TABLE = "topics.records"
TEN_DAYS_S = 10 * 24 * 60 * 60


def archive(topics: Topics, topic: str, catalog: Catalog, **more: Any) -> ArchiveSettings:
    source = TopicSource(topics.bootstrap, (topic,), format="odradek")
    return ArchiveSettings(source, str(catalog.warehouse), "iceberg", **more)


def places(catalog: Catalog) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in catalog.rows(TABLE)]


def data_files(catalog: Catalog) -> set[str]:
    return {row["file_path"] for row in catalog.table(TABLE).inspect.files().to_pylist()}


def test_small_files_old_snapshots_and_lost_files_go_and_no_record_does(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    catalog = Catalog.hadoop(tmp_path)
    topic = topics.create()
    produced = topics.fill(topic, 24)
    settings = archive(topics, topic, catalog, offsets_per_batch_max=8)
    assert archive_topics(spark, settings).batches == 3
    before = data_files(catalog)
    assert len(before) >= 3
    folder = Path(next(iter(before)).removeprefix("file:")).parent
    old, young = folder / "lost-old.parquet", folder / "lost-young.parquet"
    for path in (old, young):
        path.write_bytes(b"of a run that was killed")
    ago = time.time() - TEN_DAYS_S
    os.utime(old, (ago, ago))

    maintain = MaintainSettings(settings.location, files_min=2, keep_days=0)
    planned = {
        each.step: each.outcome
        for each in maintain_table(spark, maintain._replace(only_plans=True))
    }
    assert planned["compacting"] == f"{len(before)} small files of 24 records in 1 partitions"
    assert planned["removing orphaned files"] == "1 files"
    assert planned["expiring snapshots"].startswith("3 snapshots from before TIMESTAMP '20")
    assert (data_files(catalog), old.exists()) == (before, True)

    steps: list[Any] = []
    done = {each.step: each.outcome for each in maintain_table(spark, maintain, steps.append)}
    assert done["compacting"] == f"{len(before)} files into 1"
    assert done["removing orphaned files"] == "1 files"
    assert list(dict.fromkeys(each.step for each in steps)) == list(done)
    assert len(data_files(catalog)) == 1
    assert len(catalog.table(TABLE).snapshots()) == 1
    assert (old.exists(), young.exists()) == (False, True)
    assert not any(Path(each.removeprefix("file:")).exists() for each in before)

    state = table_at(spark.newSession(), "iceberg", settings.location).state()
    assert state.position is not None, "the newest snapshot does not say how far the archive is"
    produced += topics.fill(topic, 4, first=24)
    assert archive_topics(spark, settings).rows == 4
    assert places(catalog) == sorted((each.partition, each.offset) for each in produced)


def test_a_maintenance_that_was_killed_is_ended_by_the_next_one(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    catalog = Catalog.hadoop(tmp_path)
    topic = topics.create()
    produced = topics.fill(topic, 200)
    settings = archive(
        topics, topic, catalog, partition_by=("bucket(16, offset)",), offsets_per_batch_max=100
    )
    assert archive_topics(spark, settings).batches == 2
    before = data_files(catalog)
    data = catalog.warehouse.joinpath(*TABLE.split("."), "data")
    worker = {"folder": str(catalog.warehouse), "format": "iceberg"}

    def files() -> int:
        return len(list(data.rglob("*.parquet")))

    with PipelineRun("maintain", worker, tmp_path / "worker.log") as run:
        assert run.kill_when(lambda: files() > len(before) + 2)
    expected = sorted((each.partition, each.offset) for each in produced)
    assert places(catalog) == expected
    maintain_table(spark, MaintainSettings(settings.location, files_min=2))
    assert len(data_files(catalog)) == 16
    assert places(catalog) == expected


def test_groups_whose_commits_fail_are_put_together_by_another_round(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    catalog = Catalog.hadoop(tmp_path)
    topic = topics.create()
    produced = topics.fill(topic, 200)
    settings = archive(
        topics, topic, catalog, partition_by=("bucket(16, offset)",), offsets_per_batch_max=100
    )
    archive_topics(spark, settings)
    before = data_files(catalog)
    # The groups of one run are committed side by side: without a second try they fail each other,
    # and Iceberg says so in Spark's log only.
    table_at(spark.newSession(), "iceberg", settings.location).alter(
        "SET TBLPROPERTIES ('commit.retry.num-retries'='0')"
    )
    done = maintain_table(spark, MaintainSettings(settings.location, files_min=2))
    assert done[0].outcome == f"{len(before)} files into 16"
    assert len(data_files(catalog)) == 16
    assert places(catalog) == sorted((each.partition, each.offset) for each in produced)


def test_what_would_remove_files_of_a_running_batch_is_refused(spark: Any, tmp_path: Path) -> None:
    location = archive(Topics("nowhere:1", "t"), "t", Catalog.hadoop(tmp_path)).location
    with pytest.raises(SparkConnectorError, match="left for a day at least"):
        maintain_table(spark, MaintainSettings(location, orphan_days=0.5))
    with pytest.raises(SparkConnectorError, match="is not there"):
        maintain_table(spark, MaintainSettings(location))
