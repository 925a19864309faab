"""`odradek demo` from end to end, on the first flights of the year."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from odradek.spark_connector.demo.delays_check import compare_tables, expected_table
from odradek.spark_connector.demo.delays_plot import summarise_airlines
from odradek.spark_connector.demo.demo import DemoResult
from odradek.spark_connector.pipelines import AuditFault, AuditReport

from .conftest import Odradek

ROWS = 3_000
DAMAGED = 3
"""One in a thousand, as the demo's page says."""

SECONDS_MAX = 600


def run_demo(*arguments: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own: Spark, once started, stays in its process."""
    command = [sys.executable, "-m", "odradek", "demo", "--master", "local[2]"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX
    )


CLEAN = AuditReport("run", "nowhere", 0, 0.0, (), (), (), ())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(2 * SECONDS_MAX)
def test_the_demo_proves_its_table_and_draws_it(broker: Any, topic: str, tmp_path: Path) -> None:
    answer = run_demo(
        *("--rows", ROWS, "--output", tmp_path),
        *("--bootstrap-server", broker.bootstrap, "--prefix", f"{topic}-"),
    )
    assert answer.returncode == 0, answer.stderr
    assert "rows in Parquet: every row is right (0 missing, 0 unexp" in answer.stderr
    assert "rows in the topic: every row is right (0 missing, 0 unexp" in answer.stderr
    assert f"{2 * (ROWS + DAMAGED):,} records, nothing is wrong" in answer.stderr
    assert "Delta Air Lines" in answer.stdout
    assert "No fault was found" in (tmp_path / "audit.html").read_text()
    archived = (tmp_path / "lake").glob("topics/records/data/**/*.parquet")
    assert sum(parquet.read_metadata(path).num_rows for path in archived) == ROWS + DAMAGED
    dead = f"check of {DAMAGED} rows in the dead letters: every row is right"
    assert dead in answer.stderr
    assert (tmp_path / "delays.png").read_bytes().startswith(b"\x89PNG")

    again = run_demo(
        *("--rows", ROWS, "--output", tmp_path),
        *("--bootstrap-server", broker.bootstrap, "--prefix", f"{topic}-"),
    )
    assert again.returncode == 1
    assert again.stderr.count("odradek: error: ") == 1
    assert "exists already" in again.stderr
    assert "Traceback" not in again.stderr


def test_a_wrong_table_ends_the_demo_with_an_error(
    odradek: Odradek, broker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = expected_table(200)
    result = DemoResult(
        flights=200,
        airlines=summarise_airlines(right),
        audit=CLEAN,
        parquet=compare_tables(right, right),
        topic=compare_tables(right.drop(index=3), right),
        dead_letters=compare_tables(right, right),
        plot=tmp_path / "delays.png",
    )
    # The run itself is replaced by one whose topic has lost a row.
    monkeypatch.setattr("odradek.spark_connector.demo.demo.run_demo", lambda *_: result)
    outcome = odradek("demo", "-b", broker.bootstrap, "--output", tmp_path)
    assert outcome.code == 1
    lost = right.iloc[3]
    assert f"  missing: {lost['carrier']} {lost['hour']:%Y-%m-%dT%H:%MZ}\n" in outcome.err
    assert "NOT RIGHT (1 missing, 0 unexpected" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("odradek: error: ")


def test_a_fault_that_the_audit_finds_ends_the_demo_with_an_error(
    odradek: Odradek, broker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = expected_table(200)
    equal = compare_tables(right, right)
    lost = AuditFault("lost", "flights-again", None, 2, ("numbers 7 to 8",))
    result = DemoResult(
        flights=200,
        airlines=summarise_airlines(right),
        audit=CLEAN._replace(faults=(lost,)),
        parquet=equal,
        topic=equal,
        dead_letters=equal,
        plot=tmp_path / "delays.png",
    )
    monkeypatch.setattr("odradek.spark_connector.demo.demo.run_demo", lambda *_: result)
    outcome = odradek("demo", "-b", broker.bootstrap, "--output", tmp_path)
    assert outcome.code == 1
    assert "lost: flights-again: 2 numbers of the sequence are missing" in outcome.err
    assert "  numbers 7 to 8\n" in outcome.err
