"""A driver on a Spark cluster, run by a Python that has nothing but the wheel.

Its argument is `Work` as JSON; the last line that it prints is `Found` as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple

JAVA_OPTIONS = os.environ.get("ODRADEK_TEST_SPARK_JAVA", "")
"""What JVMs start quickly with: `shared_classes.py` made it."""


class Work(NamedTuple):
    """What the driver is to do."""

    master: str
    bootstrap: str
    topic: str
    data_folder: str
    """Of the broker."""
    folder: str
    """For checkpoints and an archive."""


class Found(NamedTuple):
    """What it has found."""

    kafka: list[Any]
    """Partition, offset and value of each record, as Spark's own source reads them."""
    odradek: list[Any]
    odradek_log: list[Any]
    streamed: list[Any]
    executors: list[str]
    """The folders of those that there are."""
    packages: list[str]
    """Where the executors' Pythons have the package from."""
    modules: list[str]
    """What they import."""
    archived: int
    replayed: int


def main(work: Work) -> Found:
    """Use the sources, the sink and two pipelines."""
    from odradek.spark_connector import spark_session
    from odradek.spark_connector.pipelines import (
        ArchiveSettings,
        ReplaySettings,
        TopicSource,
        TopicTarget,
        archive_topics,
        replay_archive,
    )

    spark = spark_session(
        "odradek standalone",
        master=work.master,
        conf={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            # Tasks do not wait for the executor that has the last one's data.
            "spark.locality.wait": "0s",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "150s",
            "spark.cores.max": "2",
        },
    )
    options = {
        "kafka.bootstrap.servers": work.bootstrap,
        "subscribe": work.topic,
        "startingOffsets": "earliest",
        "minPartitions": "6",
    }
    # Nothing is registered: Spark finds the formats by the modules that the wheel brings.
    kafka = _rows(spark.read.format("kafka").options(**options).load())
    odradek = _rows(spark.read.format("odradek").options(**options).load())
    log = spark.read.format("odradek-log").option("subscribe", work.topic)
    odradek_log = _rows(log.load(work.data_folder))

    copy = f"{work.topic}-copy"
    query = (
        spark.readStream.format("odradek")
        .options(**options)
        .load()
        .selectExpr("key", "value")
        .writeStream.format("odradek")
        .option("kafka.bootstrap.servers", work.bootstrap)
        .option("topic", copy)
        .option("checkpointLocation", f"{work.folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    streamed = _rows(spark.read.format("odradek").options(**{**options, "subscribe": copy}).load())
    looked = spark.sparkContext.parallelize(range(16), 16).mapPartitions(_look).collect()

    source = TopicSource(work.bootstrap, (work.topic,), format="odradek")
    lake = f"{work.folder}/lake"
    archived = archive_topics(spark, ArchiveSettings(source, lake)).rows
    target = TopicTarget(work.bootstrap, prefix="replayed-")
    replayed = replay_archive(spark, ReplaySettings(lake, target)).rows
    spark.stop()
    return Found(
        kafka,
        odradek,
        odradek_log,
        streamed,
        sorted({executor for executor, _, _ in looked}),
        sorted({package for _, package, _ in looked}),
        sorted({module for _, _, modules in looked for module in modules}),
        archived,
        replayed,
    )


def _rows(frame: Any) -> list[Any]:
    chosen = frame.selectExpr("partition", "offset", "CAST(value AS STRING)").collect()
    return sorted([list(row) for row in chosen])


def _look(_: Any) -> Any:
    """Runs in an executor's Python: where it has from what tasks import, and what comes with it."""
    import importlib
    import os
    import sys

    before = set(sys.modules)
    for name in ("kafka_source.batch_reader", "kafka_source.writer", "log_source.reader"):
        importlib.import_module(f"odradek.spark_connector.{name}")
    package = str(sys.modules["odradek"].__file__)
    yield os.environ["SPARK_EXECUTOR_DIRS"], package, sorted(set(sys.modules) - before)


if __name__ == "__main__":
    result = main(Work(**json.loads(sys.argv[1])))
    print(json.dumps(result._asdict()))
