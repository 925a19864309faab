"""The end of a process that is no child of this one: waited for here, or by a guard.

A guard is a small process that acts in place of a broker that cannot: one that is down, or frozen.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence

PARENT_POLL_INTERVAL_S = 0.5
"""How often a process is looked for, where the system cannot report its end."""

GUARD = """
import os, select, sys, time
*pids, command = sys.argv[1:]
pids = list(map(int, pids))
try:
    if hasattr(os, "pidfd_open"):
        select.select([os.pidfd_open(pid) for pid in pids], [], [])
    else:
        while True:
            for pid in pids:
                os.kill(pid, 0)
            time.sleep(0.5)
except ProcessLookupError:
    pass
os.execvp("sh", ["sh", "-c", command])
"""


def wait_for_end(pid: int) -> None:
    """Block until a process is gone.

    Args:
        pid: its number.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # not on this system
        while is_alive(pid):
            time.sleep(PARENT_POLL_INTERVAL_S)
        return
    try:
        waiting = select.poll()  # select() takes no descriptor from 1024 on
        waiting.register(descriptor, select.POLLIN)
        waiting.poll()
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    """Whether there is a process of this number; one that ended and was not waited for, too.

    Args:
        pid: the number.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Guard:
    """A process that runs a command when one of some processes has ended.

    Args:
        pids: whose end it waits for.
        command: for the shell.
    """

    def __init__(self, pids: Sequence[int], command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", GUARD, *map(str, pids), command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self) -> None:
        """End it before it does anything."""
        self._process.kill()
        self._process.wait()
