"""Pipelines on a Spark cluster whose workers get odradek from the command line's wheel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.duckdb_rows import duckdb_rows
from support.standalone_spark import WORKERS, StandaloneSpark
from support.wheel_environment import build_wheel, make_bare_environment

from odradek.spark_connector.pipelines.archive.files import ArchiveFolder
from odradek.testing import Cluster

pytestmark = pytest.mark.spark

PARTITIONS, COUNT = 4, 12_000
START_MS = 1_370_088_000_000
SECONDS_MAX = 500
LOOK_EVERY_S = 0.02


class Submitter(NamedTuple):
    """Submits commands to a cluster of workers that have no odradek of their own."""

    spark: StandaloneSpark
    python: Path
    wheel: Path
    folder: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.locality.wait": "0s",
        }
        options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        here = ("--master", self.spark.url, "--py-files", str(self.wheel))
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "odradek", "spark", *arguments, *here, *options],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> str:
        out, errors = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0, f"{errors}\n{self.spark.executor_logs()}"
        return out


@pytest.fixture
def submitter(tmp_path: Path) -> Iterator[Submitter]:
    wheel, python = build_wheel(tmp_path), make_bare_environment(tmp_path)
    known = [str(python), "-c", "import odradek"]
    assert subprocess.run(known, cwd=tmp_path, stderr=subprocess.DEVNULL).returncode == 1
    with StandaloneSpark(tmp_path) as spark:
        yield Submitter(spark, python, wheel, tmp_path)


@pytest.mark.timeout(900)
def test_executors_are_killed_and_nothing_is_lost_and_replicas_are_compared(
    submitter: Submitter, tmp_path: Path
) -> None:
    """Three brokers in folders of their own; the executors of both workers die in an archive."""
    with Cluster(3) as cluster:
        produced = fill(cluster)
        lake = tmp_path / "lake"
        process = submitter.start(
            *("archive", str(lake), "orders", "-b", cluster.bootstrap_servers),
            *("--source", "odradek", "--per-batch", "4000"),
        )
        killed: dict[str, int] = {}
        deadline = time.monotonic() + SECONDS_MAX
        while not killed:
            try:
                process.wait(LOOK_EVERY_S)
                submitter.finish(process)
                raise AssertionError("it ended before its executors could be killed")
            except subprocess.TimeoutExpired:
                assert time.monotonic() < deadline
            if (lake / "_spark_metadata" / "0").exists():
                killed = submitter.spark.executors()
                for pid in killed.values():
                    os.kill(pid, signal.SIGKILL)
        assert len(killed) == WORKERS
        submitter.finish(process)
        assert archived(lake) == produced
        for broker in cluster.brokers:
            broker.stop()
        folders = [str(broker.folder / "data") for broker in cluster.brokers]
        compared = ("verify-replicas", *folders, "--topic", "orders", "--replicas", "3", "--json")
        report = json.loads(submitter.finish(submitter.start(*compared)))
    assert report["differences"] == []
    assert len(report["partitions"]) == PARTITIONS


def fill(cluster: Any) -> list[tuple[int, int, bytes]]:
    """The records of a topic with a replica at each broker: partition, offset, value."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    topic = NewTopic("orders", PARTITIONS, 3, config={"retention.ms": "-1"})
    admin = AdminClient(servers)
    admin.create_topics([topic])["orders"].result(60)
    producer = Producer({**servers, "acks": "all", "queue.buffering.max.messages": COUNT})
    for number in range(COUNT):
        producer.produce(
            "orders", b"%d" % number, partition=number % PARTITIONS, timestamp=START_MS + number
        )
    assert producer.flush(90) == 0
    return sorted((n % PARTITIONS, n // PARTITIONS, b"%d" % n) for n in range(COUNT))


def archived(lake: Path) -> list[Any]:
    """What the committed files hold."""
    folder = ArchiveFolder.at(str(lake), str(lake / "_checkpoint"))
    assert folder is not None
    committed = folder.committed_files()
    files = [str(path) for path in lake.glob("topic=*/date=*/*") if path.name in committed]
    return [(row.partition, row.offset, row.value) for row in duckdb_rows(files)]
