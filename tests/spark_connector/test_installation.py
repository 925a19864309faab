"""What is wrong with Spark or Java, in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import odradek
from odradek.spark_connector.errors import SparkConnectorError
from odradek.spark_connector.installation import check_java, find_installation


def make_java(folder: Path, version_line: str) -> None:
    """A `java` that tells its version as Java does, on standard error."""
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    java.chmod(0o755)


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "java"
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


@pytest.mark.parametrize(
    ("line", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "24.0.1-ea" 2025-01-01', 24),
    ],
)
def test_java_is_accepted_from_17_on(java_home: Path, line: str, major: int) -> None:
    make_java(java_home / "bin", line)
    assert check_java() == major


@pytest.mark.parametrize(
    ("line", "major"),
    [('openjdk version "1.8.0_412"', 8), ('openjdk version "16.0.2" 2021-07-20', 16)],
)
def test_an_older_java_is_named_with_its_version(java_home: Path, line: str, major: int) -> None:
    make_java(java_home / "bin", line)
    with pytest.raises(SparkConnectorError, match=f"is Java {major}, but Spark needs Java 17"):
        check_java()


def test_a_java_home_without_java_is_reported(java_home: Path) -> None:
    with pytest.raises(SparkConnectorError, match=r"JAVA_HOME is .* there is no bin/java in it"):
        check_java()


def test_a_java_that_does_not_run_is_reported(java_home: Path) -> None:
    make_java(java_home / "bin", "Error: could not find libjava.so")
    with pytest.raises(SparkConnectorError, match="does not run; install Java 17"):
        check_java()


def test_no_java_at_all_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkConnectorError, match="Java is not installed"):
        check_java()


def make_spark(home: Path, jar: str) -> Path:
    (home / "jars").mkdir(parents=True)
    (home / "jars" / jar).touch()
    return home


def test_versions_are_those_of_the_installed_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    installation = find_installation()
    assert installation.spark_version == pyspark.__version__
    assert list(installation.jars.glob(f"scala-library-{installation.scala_version}.*.jar"))


def test_spark_home_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    home = make_spark(tmp_path / "spark", "spark-core_2.12-3.5.1.jar")
    monkeypatch.setenv("SPARK_HOME", str(home))
    with pytest.raises(SparkConnectorError, match=r"SPARK_HOME holds Spark 3\.5\.1 but PySpark is"):
        find_installation()


def test_spark_home_without_spark_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(SparkConnectorError, match="holds no Spark"):
        find_installation()


def test_without_pyspark_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "odradek").symlink_to(Path(odradek.__file__).parent)
    program = """
from odradek.spark_connector import SparkConnectorError, spark_session
try:
    spark_session()
except SparkConnectorError as error:
    print(error)
"""
    # -S leaves out installed packages; this room can be imported without any of them.
    answer = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.stdout == (
        "PySpark is not installed; install it with: pip install 'odradek[spark]'\n"
    ), answer.stderr
