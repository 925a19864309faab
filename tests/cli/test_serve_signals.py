"""Signals that come before the broker listens to them itself."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_three_brokers_of_a_process_stop_without_a_complaint(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Stopped at once, the last ones found nobody to lead their partitions, and said so."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "odradek", "serve", "--brokers", "3"),
            *("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    addresses = process.stdout.readline().split()[3].rstrip(",")
    admin = AdminClient({"bootstrap.servers": addresses})
    topics = [NewTopic("wide", 6, 3), NewTopic("alone", 6, 1)]
    for made in admin.create_topics(topics, operation_timeout=60).values():
        made.result(60)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_a_broker_that_cannot_start_stops_the_others(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        second = taken.getsockname()[1]
        outcome = subprocess.run(
            [
                *(sys.executable, "-m", "odradek", "serve", "--brokers", "3"),
                *("--listen", f"127.0.0.1:{second - 1}", "--data-dir", str(tmp_path / "data")),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert outcome.returncode == 1
    assert "another program does" in outcome.stderr
