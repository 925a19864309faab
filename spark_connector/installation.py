"""Which Spark is installed, and whether there is a Java that can run it.

Both questions are answered from files and one `java -version`, before a JVM for Spark is
started: Spark's own answers to the same mistakes are stack traces.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from .errors import SparkConnectorError

JAVA_MAJOR_MIN = 17
"""Spark 4 runs on Java 17 and later."""

JAVA_CHECK_TIMEOUT_S = 30.0

_INSTALL_PYSPARK = "install it with: pip install 'odradek[spark]'"
_CORE_JAR = re.compile(r"spark-core_(?P<scala>\d+\.\d+)-(?P<spark>[^/]+)\.jar")
_JAVA_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')


class SparkInstallation(NamedTuple):
    """A Spark on this machine."""

    home: Path
    """The folder with `bin/` and `jars/`."""
    spark_version: str
    scala_version: str
    """The Scala binary version, such as 2.13: the suffix of every Scala artifact."""

    @property
    def jars(self) -> Path:
        """The folder of jars that every Spark JVM has on its class path."""
        return self.home / "jars"


def find_installation() -> SparkInstallation:
    """The Spark that PySpark would start: the one of `SPARK_HOME`, else PySpark's own.

    Raises SparkConnectorError when PySpark is not installed, when `SPARK_HOME` holds no Spark,
    or when it holds a Spark of another version than PySpark (their Python and Java halves
    talk to each other, and must be of one version).
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkConnectorError(f"PySpark is not installed; {_INSTALL_PYSPARK}")
    own_home = Path(spec.origin).parent
    home = Path(os.environ["SPARK_HOME"]) if os.environ.get("SPARK_HOME") else own_home
    installation = _read_installation(home)
    if home != own_home and (own_home / "jars").is_dir():
        own = _read_installation(own_home)
        if own.spark_version != installation.spark_version:
            raise SparkConnectorError(
                f"SPARK_HOME holds Spark {installation.spark_version} but PySpark is"
                f" {own.spark_version}; unset SPARK_HOME, or install"
                f" pyspark=={installation.spark_version}"
            )
    return installation


def _read_installation(home: Path) -> SparkInstallation:
    """The versions are in the name of one jar, `spark-core_2.13-4.0.0.jar`."""
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        match = _CORE_JAR.fullmatch(jar.name)
        if match:
            return SparkInstallation(home, match["spark"], match["scala"])
    raise SparkConnectorError(
        f"{home} holds no Spark (no jars/spark-core_*.jar); unset SPARK_HOME if it is set, and"
        f" {_INSTALL_PYSPARK}"
    )


def check_java() -> int:
    """The major version of the Java that Spark will start.

    Raises SparkConnectorError when there is none, or one older than JAVA_MAJOR_MIN.
    """
    java = _java_command()
    answer = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=JAVA_CHECK_TIMEOUT_S
    )
    match = _JAVA_VERSION.search(answer.stderr + answer.stdout)
    if answer.returncode != 0 or match is None:
        raise SparkConnectorError(
            f"{java} does not run; install Java {JAVA_MAJOR_MIN} or later and set JAVA_HOME"
        )
    # Java 8 and older call themselves 1.8.
    major = int(match["second"] or 0) if match["first"] == "1" else int(match["first"])
    if major < JAVA_MAJOR_MIN:
        raise SparkConnectorError(
            f"{java} is Java {major}, but Spark needs Java {JAVA_MAJOR_MIN} or later;"
            " install one and set JAVA_HOME to it"
        )
    return major


def _java_command() -> str:
    """As Spark's launcher chooses: `JAVA_HOME` wins over the path."""
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        java = Path(java_home) / "bin" / "java"
        if not java.is_file():
            raise SparkConnectorError(
                f"JAVA_HOME is {java_home}, but there is no bin/java in it; set it to a Java"
                f" {JAVA_MAJOR_MIN} or later, or unset it to use the one on the path"
            )
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise SparkConnectorError(
            f"Java is not installed, and Spark runs on it; install Java {JAVA_MAJOR_MIN} or later"
            " (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"
        )
    return found
