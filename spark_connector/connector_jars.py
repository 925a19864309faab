"""Spark's Kafka connector: which one, and where its jars are.

PySpark ships without the connector. The usual way to get it, `--packages`, resolves again at
every start and so needs the network every time; a Scala or Spark version that does not match
is the most common failure. Here the coordinates come from the installed Spark, its own
resolver runs once, and from then on the jars of the cached folder are named directly.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import SparkConnectorError
from .installation import SparkInstallation

RESOLVE_TIMEOUT_S = 600.0
"""A cold resolution took 7-14 s here; a slow network may need minutes."""

_COORDINATES = re.compile(r"[\w.-]+:(?P<artifact>[\w.-]+):(?P<version>[\w.-]+)")
_SCALA_SUFFIX = re.compile(r"_(?P<scala>2\.\d+|3)$")
_COMPLETE = "complete"
"""This file is written last: a folder without it holds an interrupted resolution."""

# What the connector depends on and every Spark has in jars/ already: 50 MB less to fetch.
_SHIPPED_WITH_SPARK = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "com.google.code.findbugs:jsr305",
    "org.lz4:lz4-java",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)


def connector_packages(installation: SparkInstallation) -> list[str]:
    """The Maven coordinates of the Kafka connector that belongs to this Spark."""
    scala, version = installation.scala_version, installation.spark_version
    return [f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{version}"]


def default_ivy_folder() -> Path:
    """`$XDG_CACHE_HOME/odradek/spark`, by default under `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "odradek" / "spark"


def connector_jars(
    installation: SparkInstallation,
    packages: Sequence[str] | None = None,
    ivy_folder: Path | None = None,
) -> list[Path]:
    """The jars of `packages` and what they need; resolved at the first call, then kept.

    `packages` are Maven coordinates (`group:artifact:version`), by default the connector of the
    installed Spark; none with an empty list. `ivy_folder` is where resolved jars are
    kept, by default `default_ivy_folder()`. Two processes that ask at once resolve once.

    Raises SparkConnectorError for coordinates that cannot fit this Spark, and when the jars are
    neither in the folder nor to be had from a repository.
    """
    coordinates = list(connector_packages(installation) if packages is None else packages)
    if not coordinates:
        return []
    _check_coordinates(coordinates, installation)
    root = (ivy_folder or default_ivy_folder()).absolute()
    folder = root / re.sub(r"[^\w.-]+", "_", "+".join(coordinates))
    if not (folder / _COMPLETE).exists():
        with _locked(folder):
            if not (folder / _COMPLETE).exists():
                _resolve(installation, coordinates, folder)
    return sorted((folder / "jars").glob("*.jar"))


def _check_coordinates(packages: Sequence[str], installation: SparkInstallation) -> None:
    """A wrong Scala suffix loads and then fails at its first class: refuse it by name."""
    for package in packages:
        match = _COORDINATES.fullmatch(package)
        if match is None:
            raise SparkConnectorError(
                f"{package!r} is no Maven coordinate; write group:artifact:version, as in"
                f" {connector_packages(installation)[0]}"
            )
        suffix = _SCALA_SUFFIX.search(match["artifact"])
        if suffix and suffix["scala"] != installation.scala_version:
            raise SparkConnectorError(
                f"{package} is built for Scala {suffix['scala']}, but Spark"
                f" {installation.spark_version} here runs Scala {installation.scala_version};"
                f" use {match['artifact'][: suffix.start()]}_{installation.scala_version}"
            )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process resolves; the others wait for it and find its jars."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("w")
    except OSError as error:
        raise SparkConnectorError(
            f"the folder for Spark's connector cannot be written ({error}); give another one"
            " as ivy_folder, or set XDG_CACHE_HOME"
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _resolve(installation: SparkInstallation, packages: Sequence[str], folder: Path) -> None:
    """Let Spark's own resolver fetch `packages` into `folder`.

    `spark-submit` resolves before it runs the program it is given, so an empty one will do.
    The repositories are the user's own settings or Spark's defaults: none is named here.
    """
    with tempfile.TemporaryDirectory(prefix="odradek-resolve-") as scratch:
        program = Path(scratch) / "resolved.py"
        program.write_text("")
        command = [
            str(installation.home / "bin" / "spark-submit"),
            "--packages",
            ",".join(packages),
            "--exclude-packages",
            ",".join(_SHIPPED_WITH_SPARK),
            "--conf",
            f"spark.jars.ivy={folder}",
            str(program),
        ]
        environment = dict(
            os.environ,
            SPARK_HOME=str(installation.home),
            PYSPARK_PYTHON=sys.executable,
            PYSPARK_DRIVER_PYTHON=sys.executable,
        )
        try:
            answer = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=RESOLVE_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise SparkConnectorError(
                f"fetching {', '.join(packages)} took longer than {RESOLVE_TIMEOUT_S:.0f} s;"
                " try again, the next try goes on where this one stopped"
            ) from error
    (folder / "resolution.log").write_text(answer.stdout)
    if answer.returncode != 0 or not list((folder / "jars").glob("*.jar")):
        raise SparkConnectorError(_reason(answer.stdout, packages, folder))
    (folder / _COMPLETE).write_text("\n".join(packages) + "\n")


def _reason(log: str, packages: Sequence[str], folder: Path) -> str:
    """One sentence from the resolver's report.

    It lists an artifact as not found in both cases; a repository that did not answer leaves
    lines about the connection beside that. Spark's second default repository is no longer
    there, so its absence alone says nothing.
    """
    names = ", ".join(packages)
    report = f"the resolver's report is {folder / 'resolution.log'}"
    lost = re.findall(r"unresolved dependency: (\S+);(\S+): not found", log)
    unreachable = re.findall(r"Host (\S+) not found|Server access error at url (\S+)", log)
    hosts = {re.sub(r"^\w+://|[/:].*$", "", host or url) for host, url in unreachable}
    answered = len(hosts) < len(set(re.findall(r"tried\s+\w+://([^/\s]+)/", log)) or hosts)
    if hosts and not answered:
        return (
            f"Spark's connector ({names}) must be fetched once, and its repository cannot be"
            f" reached; connect this machine to the network for the first start, or set"
            f" spark.jars.repositories in spark-defaults.conf to a mirror; {report}"
        )
    if lost:
        artifacts = ", ".join(f"{name.replace('#', ':')}:{version}" for name, version in lost)
        return (
            f"no repository holds {artifacts}; install a PySpark whose connector is published"
            f" (pyspark==4.0.0 has been tried), or give the coordinates as packages; {report}"
        )
    return f"Spark's resolver failed to fetch {names}; {report}"
