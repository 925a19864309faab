"""Topics to another cluster, or to other names: each record once, whenever a run was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.copied_flights import PARTITIONS, TopicEnd, assert_same, produce_flights, rows
from support.pipeline_worker import PipelineRun

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import (
    MirrorSettings,
    TopicSource,
    TopicTarget,
    mirror_topics,
)

from .conftest import Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_mirror_copies_each_record_once_and_goes_on(spark: Any, topics: Topics) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 3_000)
    settings = MirrorSettings(
        TopicSource(topics.bootstrap, (topic,)),
        TopicTarget(topics.bootstrap, prefix="mirror-"),
        topic,
        offsets_per_batch_max=2_000,
        records_per_transaction=300,
    )
    assert mirror_topics(spark, settings).rows == count
    more = produce_flights(topics.bootstrap, topic, 1_000)
    assert mirror_topics(spark, settings).rows == more
    assert mirror_topics(spark, settings).rows == 0
    mirrored, original = (
        rows(spark, topics.bootstrap, name) for name in (f"mirror-{topic}", topic)
    )
    assert_same(mirrored, original, count + more)


@pytest.mark.timeout(880)
def test_a_mirror_that_is_killed_neither_loses_nor_doubles_a_record(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 12_000)
    settings = {
        "bootstrap": topics.bootstrap,
        "source": topics.bootstrap,
        "topics": [topic],
        "prefix": "mirror-",
        "step": 30,  # small: what is left takes seconds, which a late look needs
    }
    reached = TopicEnd(topics.bootstrap, f"mirror-{topic}")
    with PipelineRun("mirror", settings, tmp_path / "worker.log") as run:
        assert run.kill_when(lambda: reached() >= 1_000)
    again = MirrorSettings(
        TopicSource(topics.bootstrap, (topic,)), TopicTarget(topics.bootstrap, prefix="mirror-")
    )
    assert 0 < mirror_topics(spark, again).rows < count
    copy = rows(spark, topics.bootstrap, f"mirror-{topic}")
    assert_same(copy, rows(spark, topics.bootstrap, topic), count)


def test_a_topic_is_not_mirrored_onto_itself(spark: Any, topics: Topics) -> None:
    topic = topics.create()
    settings = MirrorSettings(
        TopicSource(topics.bootstrap, (topic,)), TopicTarget(topics.bootstrap)
    )
    with pytest.raises(SparkConnectorError, match="onto itself"):
        mirror_topics(spark, settings)
