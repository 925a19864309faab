"""`odradek demo` from end to end, on the first flights of the year."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

ROWS = 3_000


def run_demo(*arguments: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own: Spark, once started, stays in its process."""
    command = [sys.executable, "-m", "odradek", "demo", "--master", "local[2]"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=110
    )


def test_the_demo_proves_its_table_and_draws_it(broker: Any, topic: str, tmp_path: Path) -> None:
    answer = run_demo(
        *("--rows", ROWS, "--output", tmp_path),
        *("--bootstrap-server", broker.bootstrap, "--prefix", f"{topic}-"),
    )
    assert answer.returncode == 0, answer.stderr
    assert "rows in Parquet: 0 missing, 0 unexpected, 0 doubled, 0 different" in answer.stderr
    assert "rows in the topic: 0 missing, 0 unexpected, 0 doubled, 0 different" in answer.stderr
    assert "Delta Air Lines" in answer.stdout
    assert (tmp_path / "delays.png").read_bytes().startswith(b"\x89PNG")

    again = run_demo(
        *("--rows", ROWS, "--output", tmp_path),
        *("--bootstrap-server", broker.bootstrap, "--prefix", f"{topic}-"),
    )
    assert again.returncode == 1
    assert again.stderr.count("odradek: error: ") == 1
    assert "exists already" in again.stderr
    assert "Traceback" not in again.stderr
