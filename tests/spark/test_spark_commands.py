"""`odradek spark …` as a user runs it: what it prints, writes, and ends with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .conftest import Produced, Topics

pytestmark = pytest.mark.spark

SECONDS_MAX = 400


def odradek(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", "spark", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)


@pytest.mark.timeout(SECONDS_MAX)
def test_an_audit_writes_its_report_and_ends_with_the_code_of_the_worst(
    topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 20)
    topics.fill(topic, 1, partitions=2, first=21)  # key-21 goes to 1, as an odd number does
    page = tmp_path / "reports" / "audit.html"
    expected = tmp_path / "expected.toml"
    expected.write_text("[[expect]]\nkind = 'volume'\nmax = 20\nseverity = 'critical'\n")
    server = ("-b", topics.bootstrap, "--master", "local[1]", "--decode", "json")
    expectations = ("--expectations", str(expected), "--history", str(tmp_path / "history"))
    done = odradek("audit", topic, *server, *expectations, "--html", str(page), "--json")
    assert done.returncode == 5, done.stderr
    assert "the audit found faults: poison" in done.stderr
    assert "failed expectations: volume" in done.stderr
    assert len(list((tmp_path / "history").glob("run-*.parquet"))) == 1
    report = json.loads(done.stdout)
    assert report["clean"] is False
    assert report["records"] == 21
    assert [each["verdict"] for each in report["expectations"]] == ["failed"]
    assert [(f["kind"], f["partition"], f["occurrences"]) for f in report["faults"]] == [
        ("poison", 0, 10),
        ("poison", 1, 11),
    ]
    assert "11 values do not decode" in page.read_text()


def test_what_makes_no_sense_is_told_before_spark_starts(topics: Topics) -> None:
    for arguments, sentence in (
        (("audit", "a", "--sequence", "number"), "names no part of a record"),
        (("audit", "a", "--kafka", "ssl"), "write NAME=VALUE"),
        (("audit", "a", "-b", "nowhere"), "no broker's address"),
        (("mirror", "a"), "--from HOST:PORT"),
    ):
        done = odradek(*arguments)
        assert done.returncode == 1
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1


class Archived(NamedTuple):
    """A topic's records, and an archive that the command has made of them."""

    topics: Topics
    topic: str
    produced: list[Produced]
    lake: str
    complaints: str
    """What the command said."""


@pytest.fixture(scope="module")
def archived(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Archived:
    topics = Topics(broker.bootstrap, f"archived-{os.getpid()}")
    topic = topics.create()
    produced = topics.fill(topic, 50)
    lake = str(tmp_path_factory.mktemp("archived") / "lake")
    done = odradek("archive", lake, topic, "-b", topics.bootstrap, "--master", "local[1]")
    assert done.returncode == 0, done.stderr
    return Archived(topics, topic, produced, lake, done.stderr)


def check_copy(archived: Archived, copy: str) -> None:
    found = archived.topics.read(copy, 50)
    assert sorted((r.partition, r.timestamp, r.key, r.value) for r in found) == sorted(
        (r.partition, r.timestamp_ms, r.key, r.value) for r in archived.produced
    )


def test_archive_says_what_it_archived(archived: Archived) -> None:
    assert "archived 50 records" in archived.complaints


@pytest.mark.timeout(SECONDS_MAX)
def test_replay_passes_what_is_archived_on(archived: Archived) -> None:
    server = ("-b", archived.topics.bootstrap, "--master", "local[1]")
    done = odradek("replay", archived.lake, *server, "--prefix", "again-", "--job", archived.topic)
    assert done.returncode == 0, done.stderr
    assert "replayed 50 records" in done.stderr
    check_copy(archived, f"again-{archived.topic}")


@pytest.mark.timeout(SECONDS_MAX)
def test_mirror_passes_records_on(
    archived: Archived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves no log of its own where temporary files are kept."""
    bootstrap = archived.topics.bootstrap
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    server = ("--from", bootstrap, "-b", bootstrap, "--master", "local[1]")
    done = odradek("mirror", archived.topic, *server, "--prefix", "m-")
    assert done.returncode == 0, done.stderr
    check_copy(archived, f"m-{archived.topic}")
    assert list(tmp_path.glob("odradek-spark-*.log")) == []
