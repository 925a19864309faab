"""Runs of pytest as users have them: a file of tests in a folder, a process, what stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

SECONDS_MAX = 200

TALKS = """
import json, os, pytest
from kafka import KafkaConsumer, KafkaProducer

def talk(address, topic, group):
    producer = KafkaProducer(bootstrap_servers=address)
    producer.send(topic, b"hello").get(60)
    producer.close()
    consumer = KafkaConsumer(topic, bootstrap_servers=address, group_id=group,
                             auto_offset_reset="earliest", consumer_timeout_ms=60_000)
    assert next(consumer).value == b"hello"
    consumer.close()

def note(broker):
    with open(os.environ["NOTES"], "a") as notes:
        print(json.dumps([broker.pid, str(broker.folder), broker.bootstrap_servers,
                          broker.control_address]), file=notes)
"""
"""What the tests of a run may call: `talk` to a broker, and `note` one for `PytestRun.notes`."""


class PytestRun:
    """A pytest run over one file of tests.

    Args:
        folder: where the file, and all that the run writes to the temporary folder, goes.
        source: the tests.
        arguments: of pytest.
        head: what the file begins with.
    """

    def __init__(
        self, folder: Path, source: str, arguments: Sequence[str] = (), head: str = TALKS
    ) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "test_users.py").write_text(head + source)
        self.folder = folder
        self.notes_path = folder / "notes"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", *arguments],
            cwd=folder,
            env={**os.environ, "NOTES": str(self.notes_path), "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # Workers of xdist ignore Ctrl-C, and what they start would do so, too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def finish(self, seconds_max: float = SECONDS_MAX) -> str:
        """Wait for the end; returns what it printed.

        Raises:
            subprocess.TimeoutExpired: it did not come; the run has been killed.
        """
        try:
            return self.process.communicate(timeout=seconds_max)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def notes(self) -> list[list[str | int]]:
        """What its tests have noted of brokers: process, folder, address, control channel."""
        if not self.notes_path.exists():
            return []
        return [json.loads(line) for line in self.notes_path.read_text().splitlines()]

    def left_over(self) -> list[str]:
        """Folders, brokers and ports that are still there."""
        folders = [str(each) for each in self.temporary.glob("odradek-*")]
        pids = {str(note[0]) for note in self.notes()}
        left = folders + processes_of(pids, self.temporary)
        ports = {str(address) for note in self.notes() for address in note[2:] if address}
        return left + [f"port {each}" for each in sorted(ports & _listening(self.temporary))]


def processes_of(brokers: set[str], temporary: Path) -> list[str]:
    """Those of these brokers that are there, and others that were told of one of them.

    Args:
        brokers: their process ids, of which a later process of another test may have one.
        temporary: the temporary folder of the run that they belong to.
    """
    found = []
    for path in _processes(temporary):
        try:
            arguments = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended
            continue
        is_broker = path.name in brokers and "odradek.testing.process.broker" in arguments
        if is_broker or brokers.intersection(arguments[1:]):
            found.append(f"process {path.name}: {' '.join(arguments)}")
    return found


def _processes(temporary: Path) -> Iterator[Path]:
    """Where in /proc the processes are that were told of a temporary folder."""
    reported = f"TMPDIR={temporary}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if reported in (path / "environ").read_bytes().split(b"\0"):
                yield path


def _listening(temporary: Path) -> set[str]:
    """The addresses on 127.0.0.1 at which a process of a run listens."""
    sockets = set()
    for path in _processes(temporary):
        with suppress(OSError):  # it has ended
            sockets |= {os.readlink(each) for each in (path / "fd").iterdir()}
    addresses = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        host, _, port = fields[1].partition(":")
        is_theirs = f"socket:[{fields[9]}]" in sockets
        if is_theirs and fields[3] == "0A" and host == "0100007F":
            addresses.add(f"127.0.0.1:{int(port, 16)}")
    return addresses
