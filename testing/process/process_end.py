"""Waiting for the end of a process that is no child of this one."""

from __future__ import annotations

import os
import select
import time

LOOK_SECONDS = 0.5
"""How often it is looked whether the process is alive, where the system cannot tell by itself."""


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
            time.sleep(LOOK_SECONDS)
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
