"""The pipelines' lineage: one's output is the next one's input, with its columns and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.decoding import Schema
from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    AuditSettings,
    MirrorSettings,
    ReplaySettings,
    TopicSource,
    TopicTarget,
    ValueSettings,
    archive_topics,
    audit_topics,
    replay_archive,
)
from odradek.spark_connector.pipelines.lineage import (
    archive_job,
    audit_job,
    lineage_to,
    mirror_job,
    replay_job,
)

from .conftest import Topics

pytestmark = pytest.mark.spark

COUNT = 12


def names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


def test_pipelines_are_linked_by_the_names_of_their_datasets(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, COUNT)
    config = tmp_path / "openlineage.yml"
    config.write_text(
        f"transport:\n  type: file\n  log_file_path: {tmp_path}/events.jsonl\n  append: true\n"
    )
    openlineage = lineage_to(str(config), pytest.fail)
    lake = str(tmp_path / "lake")
    target = TopicTarget(topics.bootstrap, prefix="again-")
    source = TopicSource(topics.bootstrap, (topic,))
    archive = ArchiveSettings(source, lake)
    with openlineage.run(lambda: archive_job(spark, archive), spark.version) as run:
        run.rows = archive_topics(spark, archive).rows
    replay = ReplaySettings(lake, target, topic)
    with openlineage.run(lambda: replay_job(spark, replay), spark.version) as run:
        run.rows = replay_archive(spark, replay).rows
    audit = AuditSettings(TopicSource(topics.bootstrap, (f"again-{topic}",)))
    with openlineage.run(lambda: audit_job(audit), spark.version) as run:
        run.report = audit_topics(spark, audit)
    lost = ReplaySettings(lake, target, topic, topics=("nowhere",))
    with (
        pytest.raises(SparkConnectorError),
        openlineage.run(lambda: replay_job(spark, lost), spark.version),
    ):
        replay_archive(spark, lost)

    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    states = [each["eventType"] for each in events]
    assert states == ["START", "COMPLETE"] * 3 + ["START", "FAIL"]
    archived, replayed, audited = events[1], events[3], events[5]
    cluster = f"kafka://{topics.bootstrap}"
    assert names(archived["inputs"]) == [(cluster, topic)]
    assert names(archived["outputs"]) == names(replayed["inputs"]) == [("file", lake)]
    assert names(replayed["outputs"]) == names(audited["inputs"]) == [(cluster, f"again-{topic}")]
    columns = {f["name"] for f in archived["outputs"][0]["facets"]["schema"]["fields"]}
    assert columns == {field.name for field in spark.read.parquet(lake).schema.fields}
    for event in (archived, replayed):
        (written,) = event["outputs"]
        assert written["outputFacets"]["outputStatistics"]["rowCount"] == COUNT
    metrics = audited["inputs"][0]["inputFacets"]["dataQualityMetrics"]
    assert metrics["rowCount"] == COUNT
    assert "nowhere" in events[7]["run"]["facets"]["errorMessage"]["message"]


def test_a_mirror_and_an_archive_of_decoded_values_are_described_without_a_run(
    spark: Any, topics: Topics
) -> None:
    topic = topics.create()
    source = TopicSource(topics.bootstrap, pattern=f"{topic}.*")
    mirrored = mirror_job(MirrorSettings(source, TopicTarget("other:9092,b:1", prefix="m-")))
    assert [(each.namespace, each.name) for each in mirrored.outputs] == [
        ("kafka://other:9092", f"m-{topic}")
    ]
    schema = Schema(
        "AVRO", '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}'
    )
    values = ValueSettings(None, schema)
    (lake,) = archive_job(
        spark,
        ArchiveSettings(source, "s3a://bucket/a/lake/", values=values, continuous_every="1 s"),
    ).outputs
    assert (lake.namespace, lake.name) == ("s3a://bucket", "a/lake")
    assert lake.fields["decoded"] == "struct<n:bigint>"
