"""What work costs of the processor, however many others use it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

TRIES_MAX = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def least_seconds(work: Callable[[], object], enough: float) -> float:
    """The least processor time that some work takes of this thread, in several tries.

    Caches that others empty, and a machine that lends its processors, make it more at times.

    Args:
        work: may be done again and again.
        enough: seconds after which no further try is needed.
    """
    least = float("inf")
    for _ in range(TRIES_MAX):
        began = time.thread_time()
        work()
        least = min(least, time.thread_time() - began)
        if least < enough:
            break
    return least


def seconds_of(pid: int) -> float:
    """What a process has had of the processor so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS_PER_SECOND
