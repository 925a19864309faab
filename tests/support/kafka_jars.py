"""Apache Kafka's own jars, fetched by Maven with the classes of `tests/interop/java`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

JAVA_FOLDER = Path(__file__).parents[1] / "interop" / "java"
BUILD_SECONDS_MAX = 600


@cache
def kafka_jars() -> Path:
    """The folder of the jars; without Maven the test fails, because nobody would notice a skip."""
    maven = shutil.which("mvn")
    assert maven is not None, "`mvn` is not installed: install Maven, such as Debian's maven"
    with (JAVA_FOLDER / "pom.xml").open() as pom:
        fcntl.flock(pom, fcntl.LOCK_EX)  # workers would write over each other's classes
        done = subprocess.run(
            [maven, "-q", "-B", "compile", "dependency:copy-dependencies"],
            cwd=JAVA_FOLDER,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
        )
    assert done.returncode == 0, f"Maven failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return JAVA_FOLDER / "target" / "dependency"


def command_of_java() -> list[str]:
    """What goes before the name of a class of Kafka's, or of `tests/interop/java`, to run it."""
    runtime = shutil.which("java")
    assert runtime is not None, "`java` is not installed: install a JDK of 17 or later"
    libs = kafka_jars()
    class_path = os.pathsep.join([str(libs.with_name("classes")), f"{libs}/*"])
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [runtime, "-Xmx256m", "-XX:TieredStopAtLevel=1", quiet, "-cp", class_path]
