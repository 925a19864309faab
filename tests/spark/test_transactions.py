"""Spark counts what an exactly-once pipeline wrote: once each as read_committed, more without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.exactly_once import Worker
from support.exactly_once_checker import ExactlyOnceChecker, parse_output
from support.exactly_once_worker import Settings, Step

from .conftest import Topics

pytestmark = pytest.mark.spark

RECORDS = 400
PARTITIONS = 2
SESSION_MS = 30_000
QUERY_SECONDS_MAX = 240
ISOLATION = "kafka.isolation.level"


@pytest.fixture
def output(topics: Topics, tmp_path: Path) -> tuple[str, dict[tuple[int, int], bytes]]:
    """A topic that a worker wrote, some of it in vain, and the records that it read."""
    source, target = topics.create("-orders"), topics.create("-bills")
    produced = topics.fill(source, RECORDS)
    settings = Settings(
        "confluent-kafka",
        [topics.bootstrap],
        source,
        target,
        f"{topics.name}-billing",
        transactional_id=topics.name,
        session_ms=SESSION_MS,
        records_max=20,
        doom_every=2,
        patience=20,  # its broker is never away
    )
    with Worker(settings, tmp_path / "worker.log") as worker:
        worker.wait_reached(topics.end_offsets(source))
        assert worker.steps[Step.DOOMED] > 0
    return target, {(each.partition, each.offset): each.value for each in produced}


def test_spark_counts_each_record_of_a_pipeline_once(
    source: Any, spark: Any, topics: Topics, output: Any, tmp_path: Path
) -> None:
    target, inputs = output
    checker = ExactlyOnceChecker(inputs)

    def read(isolation: str) -> dict[tuple[int, int], bytes]:
        frame = source.option("subscribe", target).option(ISOLATION, isolation).load()
        rows = frame.select("partition", "offset", "value").collect()
        return {(row["partition"], row["offset"]): bytes(row["value"]) for row in rows}

    committed = read("read_committed")
    assert len(committed) == RECORDS
    checker.committed("Spark", committed)
    checker.uncommitted(committed, read("read_uncommitted"))
    assert not checker.violations, checker.report()

    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("startingOffsets", "earliest")
        .option("subscribe", target)
        .option(ISOLATION, "read_committed")
        .option("maxOffsetsPerTrigger", 100)
        .load()
    )
    query = (
        stream.select("value")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "table"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_SECONDS_MAX)
    values = [bytes(row["value"]) for row in spark.read.parquet(str(tmp_path / "table")).collect()]
    assert len(values) == RECORDS
    assert {parse_output(value).source for value in values} == inputs.keys()
