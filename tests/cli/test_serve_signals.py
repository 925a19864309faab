"""Signals that come before the broker listens to them itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_ephemeral_broker_stopped_while_it_starts_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--listen", "127.0.0.1:0"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(tmp_path.iterdir()):
        assert process.poll() is None, "it ended before it made its folder"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
