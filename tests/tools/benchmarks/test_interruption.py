"""A benchmark that is interrupted ends the broker that it has started, and leaves no files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.testing.process.process_end import is_alive

SECONDS_MAX = 60
MANY_SIZES = ["100"] * 10_000
"""Of requests, each with a line of its own: it has begun with the first, and will not be done."""


def children_of(pid: int) -> list[int]:
    """The processes that it has started and not waited for."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_interrupted_worst_requests_leave_no_broker(tmp_path: Path, number: int) -> None:
    module = "odradek.tools.benchmarks.worst_requests"
    arguments = ["--only", "^API_VERSIONS$", "--partitions", "1", "--seconds", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments, "--sizes", *MANY_SIZES],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as benchmark:
        assert benchmark.stderr is not None
        assert benchmark.stderr.readline().startswith(b"API_VERSIONS")
        brokers = children_of(benchmark.pid)
        assert brokers
        benchmark.send_signal(number)
        benchmark.communicate(timeout=SECONDS_MAX)
    assert benchmark.returncode != 0
    assert not [broker for broker in brokers if is_alive(broker)]
    assert not list(tmp_path.iterdir())
