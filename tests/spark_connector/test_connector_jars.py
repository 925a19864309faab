"""Finding, fetching and keeping the connector; a script stands in for Spark's resolver."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from odradek.spark_connector.connector_jars import (
    connector_jars,
    connector_packages,
    default_ivy_folder,
)
from odradek.spark_connector.errors import SparkConnectorError
from odradek.spark_connector.installation import SparkInstallation

RESOLVER = """#!/bin/sh
echo called >> {calls}
for argument in "$@"; do
    case "$argument" in
        spark.jars.ivy=*) ivy="${{argument#spark.jars.ivy=}}" ;;
    esac
done
{body}
"""
SUCCEEDS = 'mkdir -p "$ivy/jars" && touch "$ivy/jars/b.jar" "$ivy/jars/a.jar"'

# Lines of Ivy's reports, shortened; the second default repository has been gone for years.
NO_NETWORK = """cat <<'END'
    ==== central: tried
      https://central.example/org/connector.pom
    ==== spark-packages: tried
      https://packages.example/org/connector.pom
:: unresolved dependency: org.apache.spark#connector_2.13;4.0.0: not found
    Host central.example not found. url=https://central.example/org/connector.pom
    Host packages.example not found. url=https://packages.example/org/connector.pom
END
exit 1"""
NOT_PUBLISHED = """cat <<'END'
    ==== central: tried
      https://central.example/org/connector.pom
    ==== spark-packages: tried
      https://packages.example/org/connector.pom
:: unresolved dependency: org.apache.spark#token-provider_2.13;4.2.0: not found
    Host packages.example not found. url=https://packages.example/org/connector.pom
END
exit 1"""


class FakeSpark:
    """A Spark home whose spark-submit is a shell script."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self.installation = SparkInstallation(folder / "spark", "4.0.0", "2.13")
        (folder / "spark" / "bin").mkdir(parents=True)
        self.resolve_by(SUCCEEDS)

    def resolve_by(self, body: str) -> None:
        script = self.installation.home / "bin" / "spark-submit"
        script.write_text(RESOLVER.format(calls=self.calls, body=body))
        script.chmod(0o755)

    @property
    def call_count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def spark(tmp_path: Path) -> FakeSpark:
    return FakeSpark(tmp_path)


def names(jars: list[Path]) -> list[str]:
    return [jar.name for jar in jars]


def test_the_coordinates_are_those_of_the_installed_spark(spark: FakeSpark) -> None:
    assert connector_packages(spark.installation) == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
    ]


def test_the_second_time_nothing_is_fetched(spark: FakeSpark, tmp_path: Path) -> None:
    first = connector_jars(spark.installation, ivy_folder=tmp_path / "ivy")
    spark.resolve_by("exit 1")
    assert connector_jars(spark.installation, ivy_folder=tmp_path / "ivy") == first
    assert names(first) == ["a.jar", "b.jar"]
    assert spark.call_count == 1


def test_jars_of_different_packages_are_kept_apart(spark: FakeSpark, tmp_path: Path) -> None:
    connector_jars(spark.installation, ivy_folder=tmp_path)
    spark.resolve_by('mkdir -p "$ivy/jars" && touch "$ivy/jars/c.jar"')
    other = connector_jars(spark.installation, ["org.example:thing:1.0"], tmp_path)
    assert names(other) == ["c.jar"]


def test_an_interrupted_resolution_is_done_again(spark: FakeSpark, tmp_path: Path) -> None:
    spark.resolve_by('mkdir -p "$ivy/jars" && touch "$ivy/jars/a.jar"; exit 1')
    with pytest.raises(SparkConnectorError):
        connector_jars(spark.installation, ivy_folder=tmp_path)
    spark.resolve_by(SUCCEEDS)
    assert names(connector_jars(spark.installation, ivy_folder=tmp_path)) == ["a.jar", "b.jar"]


def test_two_at_once_resolve_once(spark: FakeSpark, tmp_path: Path) -> None:
    # The first waits inside its resolution until the second has had time to ask.
    spark.resolve_by(f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done\n{SUCCEEDS}")
    found: list[list[str]] = []

    def ask() -> None:
        found.append(names(connector_jars(spark.installation, ivy_folder=tmp_path / "ivy")))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [["a.jar", "b.jar"]] * 2
    assert spark.call_count == 1


def test_another_scala_is_refused_before_anything_is_fetched(
    spark: FakeSpark, tmp_path: Path
) -> None:
    wrong = "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1"
    with pytest.raises(
        SparkConnectorError, match=r"built for Scala 2\.12, .* use spark-sql-kafka-0-10_2\.13$"
    ):
        connector_jars(spark.installation, [wrong], tmp_path)
    assert spark.call_count == 0


@pytest.mark.parametrize("package", ["connector", "group:artifact", "a:b:c:d", "group:artifact: 1"])
def test_what_is_no_coordinate_is_reported(spark: FakeSpark, tmp_path: Path, package: str) -> None:
    with pytest.raises(SparkConnectorError, match="is no Maven coordinate"):
        connector_jars(spark.installation, [package], tmp_path)


def test_no_network_is_reported_as_that(spark: FakeSpark, tmp_path: Path) -> None:
    spark.resolve_by(NO_NETWORK)
    with pytest.raises(SparkConnectorError, match="its repository cannot be reached") as failure:
        connector_jars(spark.installation, ivy_folder=tmp_path)
    report = Path(str(failure.value).rpartition("report is ")[2])
    assert "unresolved dependency" in report.read_text()


def test_an_artifact_nobody_has_is_named(spark: FakeSpark, tmp_path: Path) -> None:
    spark.resolve_by(NOT_PUBLISHED)
    with pytest.raises(
        SparkConnectorError,
        match=r"no repository holds org\.apache\.spark:token-provider_2\.13:4\.2\.0;",
    ):
        connector_jars(spark.installation, ivy_folder=tmp_path)


def test_a_folder_that_cannot_be_made_is_reported(spark: FakeSpark, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SparkConnectorError, match="cannot be written"):
        connector_jars(spark.installation, ivy_folder=tmp_path / "file")


def test_the_default_folder_is_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_ivy_folder() == tmp_path / "odradek" / "spark"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_ivy_folder() == tmp_path / ".cache" / "odradek" / "spark"
