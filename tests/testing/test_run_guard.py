"""What the tests of this repository start ends with their run, though nobody stops it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.pytest_runs import SECONDS_MAX, PytestRun
from support.run_guard import MARK, marked
from support.selection import short

from odradek.testing.waiting import wait_until

TESTS = Path(__file__).parents[1]
SOURCE = """
import os, subprocess, threading
from pathlib import Path

def test_that_goes_on(broker):
    sleeper = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    started = Path(os.environ["NOTES"])
    started.with_suffix(".new").write_text(f"{broker.pid} {sleeper.pid} " + os.environ["MARK"])
    started.with_suffix(".new").rename(started)
    threading.Event().wait()
""".replace("MARK", MARK)


@pytest.mark.parametrize("end", short([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], 1), ids=str)
def test_nothing_outlives_a_run_that_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    run = PytestRun(tmp_path, SOURCE, ("-p", "conftest"), head="")
    wait_until(run.notes_path.exists, SECONDS_MAX, lambda: str(run.process.poll()))
    broker, sleeper, mark = run.notes_path.read_text().split()
    # The kernel shows the environment of a program a moment after it says that it began.
    wait_until(lambda: {int(broker), int(sleeper)} <= set(marked(mark)), SECONDS_MAX)
    os.kill(run.process.pid, end)
    run.process.wait(SECONDS_MAX)
    wait_until(lambda: not marked(mark), SECONDS_MAX, lambda: str(marked(mark)))
