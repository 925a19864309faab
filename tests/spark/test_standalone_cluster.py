"""A Spark cluster of processes: executors that have the wheel and know nothing of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.spark_rows import Row, fill
from support.standalone_driver import Found, Work
from support.standalone_spark import WORKERS, StandaloneSpark
from support.wheel_environment import CHECKOUT, make_environment

from .conftest import Topics

pytestmark = pytest.mark.spark

PARTITIONS = 3
COUNT = 3_000
DRIVER_SECONDS_MAX = 450
DRIVER = Path(__file__).parents[1] / "support" / "standalone_driver.py"
OF_THE_BROKER = {"broker", "client", "replication", "cli", "testing"}
HEAVY = {"construct", "kafka", "prometheus_client", "rich", "trio", "typer"}


@pytest.mark.timeout(900)
def test_sources_and_pipelines_work_on_a_cluster_from_the_wheel_alone(
    start_broker: Any, tmp_path: Path, topic: str
) -> None:
    broker = start_broker()
    topics = Topics(broker.bootstrap, topic)
    topics.create(partitions=PARTITIONS)
    topics.create("-copy", PARTITIONS)
    produced = fill(broker.bootstrap, topic, COUNT, PARTITIONS)
    with StandaloneSpark(tmp_path) as spark:
        work = Work(spark.url, broker.bootstrap, topic, str(broker.data_dir), str(tmp_path))
        found = drive(work, make_environment(tmp_path), spark)
    check_rows(found, produced)
    check_executors(found, tmp_path)
    replayed = topics.read(f"replayed-{topic}", COUNT)
    assert sorted((r.partition, r.timestamp, r.key, r.value) for r in replayed) == sorted(
        (row.partition, row.timestamp_ms, row.key, row.value) for row in produced
    )


def drive(work: Work, python: Path, spark: StandaloneSpark) -> Found:
    """Run the driver in an empty folder, with the environment's own Python for the executors."""
    folder = Path(work.folder) / "empty"
    folder.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
    }
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    done = subprocess.run(
        [str(python), str(DRIVER), json.dumps(work._asdict())],
        capture_output=True,
        text=True,
        timeout=DRIVER_SECONDS_MAX,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, f"{done.stderr[-4000:]}\n{spark.executor_logs()}"
    return Found(**json.loads(done.stdout.splitlines()[-1]))


def check_rows(found: Found, produced: list[Row]) -> None:
    wanted = sorted(
        [row.partition, row.offset, None if row.value is None else row.value.decode()]
        for row in produced
    )
    assert found.kafka == wanted
    assert found.odradek == wanted
    assert found.odradek_log == wanted
    values = sorted(value or "" for _, _, value in wanted)
    assert sorted(value or "" for _, _, value in found.streamed) == values
    assert (found.archived, found.replayed) == (COUNT, COUNT)


def check_executors(found: Found, folder: Path) -> None:
    assert len(found.executors) == WORKERS
    for package in found.packages:
        assert package.startswith(str(folder / "environment")), package
        assert not package.startswith(str(CHECKOUT))
    rooms = {name.split(".")[1] for name in found.modules if name.startswith("odradek.")}
    assert not rooms & OF_THE_BROKER
    assert not {name.partition(".")[0] for name in found.modules} & HEAVY
