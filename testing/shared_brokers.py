"""Brokers that a whole test run shares, over all processes of it.

The first test that needs a broker of some settings starts it, whichever worker it runs in. The
broker belongs to the process that runs it all and ends with that, at the latest; a folder named
after that process tells the others where it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .broker import wait_for_end
from .running_broker import Broker


class SharedBroker(NamedTuple):
    """A broker that other tests use, too.

    Attributes:
        bootstrap_servers: the address to give to clients.
        pid: its process; 0 if it is a Kafka that ran before the tests.
        log_path: its log; None if that is not known.
        folder: all that it keeps; None if it is not this run's.
    """

    bootstrap_servers: str
    pid: int = 0
    log_path: str | None = None
    folder: str | None = None

    @property
    def log(self) -> str:
        """What the broker has logged so far."""
        if self.log_path is None:
            return ""
        return Path(self.log_path).read_text(errors="replace")

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic.

        Args:
            name: no topic of that name exists.
            partitions: how many.
        """
        from kafka.admin import KafkaAdminClient, NewTopic

        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        try:
            admin.create_topics([NewTopic(name, partitions, 1)])
        finally:
            admin.close()


def run_folder(owner: int) -> Path:
    """Where the processes of a run tell each other of its brokers.

    Args:
        owner: the process that runs it all.
    """
    return Path(tempfile.gettempdir()) / f"odradek-run-{os.getuid()}-{owner}"


class SharedBrokers:
    """The brokers of one run, as one of its processes sees them.

    Args:
        owner: the process that runs it all.
        bootstrap_servers: a Kafka that is used in place of all of them; empty: none.
    """

    def __init__(self, owner: int, bootstrap_servers: str = "") -> None:
        self._owner = owner
        self._folder = run_folder(owner)
        self._external = SharedBroker(bootstrap_servers) if bootstrap_servers else None
        self._known: dict[str, SharedBroker] = {}

    def broker(self, settings: Mapping[str, str]) -> SharedBroker:
        """The run's broker of these settings, started if nobody has yet.

        Raises:
            BrokerStartError: it did not become ready.
        """
        if self._external is not None:
            return self._external
        text = json.dumps(sorted(settings.items()))
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find_or_start(key, settings)
        return found

    def _find_or_start(self, key: str, settings: Mapping[str, str]) -> SharedBroker:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        note = self._folder / f"{key}.json"
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if note.exists():
                found = SharedBroker(*json.loads(note.read_text()))
                if _is_running(found):
                    return found
            broker = Broker(settings, exit_with=self._owner, leftovers=[self._folder])
            started = SharedBroker(
                broker.bootstrap_servers, broker.pid, str(broker.log_path), str(broker.folder)
            )
            broker.release()
            note.write_text(json.dumps(started))
        return started

    def close(self) -> None:
        """End all brokers of the run, and remove what they kept; for its owner."""
        for note in self._folder.glob("*.json"):
            broker = SharedBroker(*json.loads(note.read_text()))
            if _is_running(broker):
                os.kill(broker.pid, signal.SIGKILL)
                wait_for_end(broker.pid)
            if broker.folder is not None:
                shutil.rmtree(broker.folder, ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def _is_running(broker: SharedBroker) -> bool:
    """Whether its process is there, and is not another one of the same number."""
    try:
        command = Path(f"/proc/{broker.pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"odradek.testing.broker" in command and str(broker.folder).encode() in command
