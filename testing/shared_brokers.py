"""Brokers that a whole test run shares, over all processes of it.

The first test that needs a broker of some settings starts it, whichever worker it runs in. The
broker belongs to the process that runs it all and ends with that, at the latest; a folder named
after that process, which only its user may enter, tells the others where it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from .broker_process import BrokerStartError
from .process_end import wait_for_end
from .run_folder import run_folder
from .running_broker import Broker
from .shared_broker import SharedBroker, shared_broker_of


class SharedBrokers:
    """The brokers of one run, as one of its processes sees them.

    Args:
        owner: the process that runs it all.
        bootstrap_servers: a Kafka that is used in place of all of them; empty: none.
    """

    def __init__(self, owner: int, bootstrap_servers: str = "") -> None:
        self._owner = owner
        self._external = SharedBroker(bootstrap_servers) if bootstrap_servers else None
        self._known: dict[str, SharedBroker] = {}

    def broker(self, settings: Mapping[str, str], *, tls: bool = False) -> SharedBroker:
        """The run's broker of these settings, started if nobody has yet.

        Args:
            settings: by Kafka's names.
            tls: whether clients speak TLS with it.

        Raises:
            BrokerStartError: it did not become ready.
        """
        if self._external is not None:
            return self._external
        text = json.dumps([tls, sorted(settings.items())])
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        found = self._known.get(key)
        if found is None or not _is_running(found):
            found = self._known[key] = self._find_or_start(key, settings, tls)
        return found

    def _find_or_start(self, key: str, settings: Mapping[str, str], tls: bool) -> SharedBroker:
        folder = _own_folder(run_folder(self._owner))
        note = folder / f"{key}.json"
        with _locked(folder / "lock"):
            if note.exists():
                found = SharedBroker.from_facts(json.loads(note.read_text()))
                if _is_running(found):
                    return found
            broker = Broker(settings, exit_with=self._owner, leftovers=[folder], tls=tls)
            started = shared_broker_of(broker)
            broker.release()
            _write_whole(note, json.dumps(started.facts()))
        return started

    def close(self) -> None:
        """End all brokers of the run, and remove what they kept; for its owner."""
        if self._external is not None:
            return
        folder = run_folder(self._owner)
        if not _is_own(folder):
            return  # whoever made it may have written there what is to be removed
        for note in folder.glob("*.json"):
            broker = SharedBroker.from_facts(json.loads(note.read_text()))
            if _is_running(broker):
                os.kill(broker.pid, signal.SIGKILL)
                wait_for_end(broker.pid)
            if broker.folder is not None:
                shutil.rmtree(broker.folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def _own_folder(path: Path) -> Path:
    """Make a folder that nobody else may enter, if it is not there.

    Raises:
        BrokerStartError: there is one, and it is another user's.
    """
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if not _is_own(path):
        raise BrokerStartError(f"{path} is not a folder that only this user may enter; remove it")
    return path


def _is_own(path: Path) -> bool:
    """Whether it is a folder that nobody but this user may enter."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    is_private = stat.S_IMODE(found.st_mode) & 0o777 == 0o700
    return stat.S_ISDIR(found.st_mode) and is_private and found.st_uid == os.getuid()


def _write_whole(path: Path, text: str) -> None:
    """Write a file that only this user may read; whoever finds it there finds all of it."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.rename(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep the other processes of the run out."""
    import fcntl  # not on Windows, where the plugin is used with a Kafka that runs already

    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_running(broker: SharedBroker) -> bool:
    """Whether its process is there, and is not another one of the same number."""
    try:
        command = Path(f"/proc/{broker.pid}/cmdline").read_bytes()
    except OSError:
        if Path("/proc/self").exists():
            return False
        listed = subprocess.run(  # as on macOS
            ["ps", "-ww", "-o", "command=", "-p", str(broker.pid)], stdout=subprocess.PIPE
        )
        command = listed.stdout
    return b"odradek.testing.broker" in command and str(broker.folder).encode() in command
