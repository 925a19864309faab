"""`odradek spark …` as a user runs it: what it prints, writes, and ends with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Topics

pytestmark = pytest.mark.spark

SECONDS_MAX = 400


def odradek(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", "spark", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)


@pytest.mark.timeout(SECONDS_MAX)
def test_an_audit_with_a_fault_writes_its_report_and_ends_with_1(
    topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 20)
    topics.fill(topic, 1, partitions=2, first=21)  # key-21 goes to 1, as an odd number does
    page = tmp_path / "reports" / "audit.html"
    server = ("-b", topics.bootstrap, "--master", "local[1]")
    done = odradek("audit", topic, *server, "--decode", "json", "--html", str(page), "--json")
    assert done.returncode == 1, done.stderr
    assert "odradek: error: the audit found faults: poison" in done.stderr
    report = json.loads(done.stdout)
    assert report["clean"] is False
    assert report["records"] == 21
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


@pytest.mark.timeout(3 * SECONDS_MAX)
def test_archive_replay_and_mirror_pass_records_on(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 50)
    lake, server = str(tmp_path / "lake"), ("-b", topics.bootstrap, "--master", "local[1]")
    archived = odradek("archive", lake, topic, *server)
    assert archived.returncode == 0, archived.stderr
    assert "archived 50 records" in archived.stderr
    replayed = odradek("replay", lake, *server, "--prefix", "again-", "--job", topic)
    assert replayed.returncode == 0, replayed.stderr
    assert "replayed 50 records" in replayed.stderr
    mirrored = odradek(
        "mirror", f"again-{topic}", "--from", topics.bootstrap, *server, "--prefix", "m-"
    )
    assert mirrored.returncode == 0, mirrored.stderr
    found = topics.read(f"m-again-{topic}", 50)
    assert sorted((r.partition, r.timestamp, r.key, r.value) for r in found) == sorted(
        (r.partition, r.timestamp_ms, r.key, r.value) for r in produced
    )
