"""The unit of systemd: its settings are known to systemd, and it hears when the broker is ready."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.cli.serve import command
from odradek.testing.process.broker_process import BrokerProcess

UNIT = Path(__file__).parents[2] / "deploy" / "odradek.service"


@pytest.mark.slow
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    assert verify is not None, "install systemd: .ci/need systemd-analyze"
    text = UNIT.read_text()
    # Where it is installed is another place here, and systemd looks whether it can be run.
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace("/opt/odradek/bin/odradek", sys.executable))
    assert copy.read_text() != text
    done = subprocess.run([verify, "verify", str(copy)], capture_output=True, text=True)
    about_it = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, about_it) == (0, []), done.stderr


def test_its_command_line_is_one(tmp_path: Path) -> None:
    (line,) = [each for each in UNIT.read_text().splitlines() if each.startswith("ExecStart=")]
    _, serve, *arguments = shlex.split(line.removeprefix("ExecStart="))
    assert serve == "serve"
    options = command.read_options(arguments)
    assert options.data_dir == "/var/lib/odradek"
    assert "StateDirectory=odradek\n" in UNIT.read_text()


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_broker_says_when_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_abstract: bool
) -> None:
    name = f"odradek-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if is_abstract else name)
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if is_abstract else name)
        with BrokerProcess(tmp_path / "data") as broker:
            assert manager.recv(1000).decode() == f"READY=1\nSTATUS=serving at {broker.bootstrap}"


def test_a_socket_that_is_gone_stops_no_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.is_running
