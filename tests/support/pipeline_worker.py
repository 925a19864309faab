"""One run of a pipeline in a process of its own, which a test may kill.

Its arguments are the pipeline's name and its settings as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

JAVA_OPTIONS = os.environ.get("ODRADEK_TEST_SPARK_JAVA", "")
"""What JVMs start quickly with: `shared_classes.py` made it."""
SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
}
RUN_SECONDS_MAX = 400.0
LOOK_EVERY_S = 0.02


class PipelineRun:
    """A worker; a context manager that kills it, its JVM and its executors' Pythons.

    Args:
        pipeline: `archive`, `maintain`, `replay` or `mirror`.
        settings: for it.
        log: takes what it says.
        before: a command that runs it.
    """

    def __init__(
        self, pipeline: str, settings: dict[str, Any], log: Path, before: Sequence[str] = ()
    ) -> None:
        self._log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [*before, sys.executable, __file__, pipeline, json.dumps(settings), str(log)],
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> PipelineRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """All of its processes at once, as when a machine fails."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def kill_when(self, is_time: Callable[[], bool]) -> bool:
        """Kill it at a moment; False if it was done before that."""
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while True:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(LOOK_EVERY_S)
                assert self.process.returncode == 0, self._log.read_text()[-3000:]
                return False
            if is_time():
                self.kill()
                return True
            assert time.monotonic() < deadline, f"it is not done after {RUN_SECONDS_MAX:.0f} s"

    def finish(self) -> None:
        """Let it end."""
        code = self.process.wait(RUN_SECONDS_MAX)
        assert code == 0, self._log.read_text()[-3000:]


def main(pipeline: str, settings: dict[str, Any], log: Path) -> None:
    """Run it."""
    from odradek.spark_connector import pipelines, spark_session
    from odradek.spark_connector.connector_jars import connector_packages
    from odradek.spark_connector.installation import find_installation
    from odradek.spark_connector.pipelines.archive.formats import table_conf, table_packages

    table_format, catalog = settings.get("format", "parquet"), settings.get("catalog", {})
    found = find_installation()
    packages = [*connector_packages(found), *table_packages(found, table_format, catalog)]
    conf = {**SPARK, **table_conf(table_format)}
    spark = spark_session(
        "odradek worker", master="local[2]", packages=packages, conf=conf, log_file=log
    )
    if pipeline == "archive":
        source = pipelines.TopicSource(settings["bootstrap"], tuple(settings["topics"]))
        pipelines.archive_topics(
            spark,
            pipelines.ArchiveSettings(
                source,
                settings["folder"],
                table_format,
                offsets_per_batch_max=settings["step"],
                catalog=catalog,
            ),
        )
        return
    if pipeline == "maintain":
        location = pipelines.TableLocation(settings["folder"], catalog)
        maintain = pipelines.MaintainSettings(location, files_min=2, table_format=table_format)
        pipelines.maintain_table(spark, maintain)
        return
    target = pipelines.TopicTarget(settings["bootstrap"], prefix=settings["prefix"])
    if pipeline == "replay":
        pipelines.replay_archive(
            spark,
            pipelines.ReplaySettings(
                settings["folder"],
                target,
                table_format=table_format,
                records_per_transaction=settings["step"],
            ),
        )
        return
    source = pipelines.TopicSource(settings["source"], tuple(settings["topics"]))
    pipelines.mirror_topics(
        spark,
        pipelines.MirrorSettings(
            source,
            target,
            offsets_per_batch_max=10 * settings["step"],
            records_per_transaction=settings["step"],
        ),
    )


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]))
    os._exit(0)  # the JVM is killed with the process group
