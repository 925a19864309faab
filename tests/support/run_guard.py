"""Whatever a run of tests started ends with it, however the run ends.

A run that is killed stops nothing: neither its brokers nor JVMs nor workers in sessions of their
own. So, as Jenkins does with its builds, everything that it starts inherits a mark in its
environment, and another process ends what bears the mark once the run is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

MARK = "ODRADEK_TEST_RUN"
ROUNDS = 10
"""What is about to start another process may be a moment ahead of who looks for both."""


def guard_this_run() -> None:
    """Have all that this process starts from now on end when it does."""
    if not hasattr(os, "pidfd_open"):
        return  # it is Linux that tells of the environments of others
    mark = os.environ[MARK] = uuid.uuid4().hex
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(os.getpid()), mark],
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def marked(mark: str) -> list[int]:
    """The processes that bear a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if f"{MARK}={mark}".encode() in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    return found


def main(run: int, mark: str) -> None:
    """Wait for the end of a run, and kill what it has left."""
    import select  # here: this runs without the site's packages, and at once

    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(run)], [], [])
    for _ in range(ROUNDS):
        for pid in marked(mark):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
