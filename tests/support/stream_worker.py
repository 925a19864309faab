"""Two queries in a process of their own, which a test may kill with its JVM: a driver that dies.

Its argument is `Job` as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from odradek.spark_connector import register, spark_session

JAVA_OPTIONS = os.environ.get("ODRADEK_TEST_SPARK_JAVA", "")
"""What JVMs start quickly with: `shared_classes.py` made it."""
SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    # What the documentation tells of the caches of consumers and of fetched data: small and
    # short-lived here, so that tasks meet consumers that were thrown away in between.
    "spark.kafka.consumer.cache.capacity": "1",
    "spark.kafka.consumer.cache.timeout": "200ms",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "100ms",
    "spark.kafka.consumer.cache.jmx.enable": "true",
    "spark.kafka.consumer.fetchedData.cache.timeout": "200ms",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "100ms",
}
END_SECONDS_MAX = 60.0
SOURCES = ("kafka", "odradek")


class Job(NamedTuple):
    """What the queries do, one with each of the sources."""

    bootstrap: str
    topic: str
    folder: str
    """Holds a table and a checkpoint for each of the sources."""
    offsets_per_batch: int
    ends: bool
    """Whether to end with what is there now, or to wait for more."""


class StreamWorker:
    """A worker; a context manager that kills it, its JVM and its Pythons."""

    def __init__(self, job: Job, log: Path) -> None:
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, __file__, json.dumps(job._asdict()), str(log)],
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> StreamWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def has_ended(self) -> bool:
        """Whether it is done, or has failed."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """All of its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)


def main(job: Job, log: Path) -> None:
    """Run both queries."""
    spark = spark_session("odradek worker", master="local[2]", conf=SPARK, log_file=log)
    for query in start_queries(spark, job).values():
        query.awaitTermination()


def start_queries(spark: Any, job: Job) -> dict[str, Any]:
    """Both queries, by their sources; those of a job that ends have read what is there."""
    register(spark)
    queries = {source: _started(spark, job, source) for source in SOURCES}
    if job.ends:
        queries["odradek"].processAllAvailable()
        queries["odradek"].stop()
    return queries


def _started(spark: Any, job: Job, source: str) -> Any:
    options = {
        "kafka.bootstrap.servers": job.bootstrap,
        "subscribe": job.topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(job.offsets_per_batch),
    }
    trigger: dict[str, Any] = {"processingTime": "0 seconds"}
    if source == "odradek":
        options["stopAtLatest" if job.ends else "limitFirstBatch"] = "true"
    elif job.ends:
        trigger = {"availableNow": True}
    folder = Path(job.folder)
    return (
        spark.readStream.format(source)
        .options(**options)
        .load()
        .writeStream.format("parquet")
        .option("path", str(folder / f"table-{source}"))
        .option("checkpointLocation", str(folder / f"checkpoint-{source}"))
        .trigger(**trigger)
        .start()
    )


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])), Path(sys.argv[2]))
    os._exit(0)  # the JVM is killed with the process group
