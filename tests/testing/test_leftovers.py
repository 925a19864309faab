"""What a program that uses brokers without pytest leaves behind, however it ends: nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.pytest_runs import processes_of
from support.selection import short

from odradek.testing import Broker
from odradek.testing.client_settings import TlsFiles

SECONDS_MAX = 120
LOOK_SECONDS = 0.05

HEAD = """
import os, signal
from odradek.testing import Broker, Cluster

broker, frozen, cluster = Broker(), Broker(), Cluster(2)
print(broker.pid, frozen.pid, *(each.pid for each in cluster.brokers), flush=True)
"""
ENDS = {
    "never closed": "",
    "an exception": "raise SystemExit(3)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "killed while brokers are down or frozen": """
broker.kill()
frozen.freeze()
cluster.brokers[0].kill()
cluster.brokers[1].stop()
os.kill(os.getpid(), signal.SIGKILL)
""",
    "killed after a restart": """
broker.kill()
broker.start()
os.kill(os.getpid(), signal.SIGKILL)
""",
}


@pytest.mark.parametrize("end", short(ENDS, 2))
def test_nothing_is_left_of_a_program(tmp_path: Path, end: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", HEAD + ENDS[end]],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        timeout=SECONDS_MAX,
    )
    pids = set(run.stdout.decode().split())
    assert len(pids) == 4
    deadline = time.monotonic() + SECONDS_MAX
    while left := [*map(str, tmp_path.iterdir()), *processes_of(pids, tmp_path)]:
        assert time.monotonic() < deadline, left
        threading.Event().wait(LOOK_SECONDS)


def test_a_broker_whose_certificates_cannot_be_made_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(Exception, match=r"pip install odradek\[tls\]"):
        Broker(tls=True)
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_cannot_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    nowhere = TlsFiles(*(str(tmp_path / "no-such-file") for _ in TlsFiles._fields))
    with pytest.raises(Exception, match="no-such-file"):
        Broker(tls=nowhere)
    assert list(tmp_path.iterdir()) == []
