"""Apache Kafka's own jars, fetched by Maven with our classes that go with them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

JAVA_FOLDER = Path(__file__).parents[1] / "interop" / "java"
KAFKA_3_9_FOLDER = JAVA_FOLDER.with_name("java_kafka_3_9")
"""Of the last Kafka that has ZooKeeper."""
BUILD_SECONDS_MAX = 600


def kafka_jars(project: Path = JAVA_FOLDER) -> Path:
    """The folder of the jars; without Maven the test fails, because nobody would notice a skip.

    Args:
        project: Maven's, with our classes.
    """
    return _built(project) / "dependency"


@cache
def _built(project: Path) -> Path:
    maven = shutil.which("mvn")
    assert maven is not None, "`mvn` is not installed: install Maven, such as Debian's maven"
    with (project / "pom.xml").open() as pom:
        fcntl.flock(pom, fcntl.LOCK_EX)  # workers would write over each other's classes
        done = subprocess.run(
            [maven, "-q", "-B", "compile", "dependency:copy-dependencies"],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
        )
    assert done.returncode == 0, f"Maven failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return project / "target"


def command_of_java(project: Path = JAVA_FOLDER) -> list[str]:
    """What goes before the name of a class of Kafka's, or of `tests/interop/java`, to run it.

    Args:
        project: whose Kafka it is, and whose classes are there besides.
    """
    runtime = shutil.which("java")
    assert runtime is not None, "`java` is not installed: install a JDK of 17 or later"
    classes = [str(_built(each) / "classes") for each in dict.fromkeys((JAVA_FOLDER, project))]
    class_path = os.pathsep.join([*classes, f"{kafka_jars(project)}/*"])
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [runtime, "-Xmx256m", "-XX:TieredStopAtLevel=1", quiet, "-cp", class_path]
