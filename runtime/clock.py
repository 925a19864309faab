"""What time it is, and how long something took.

Two readings, never mixed: wall time stands in records and files, monotonic time drives
timers, so that a stepped system clock neither fires nor stalls them. Who may read wall time, and
for what, is the table WALL_TIME in `tests/test_architecture.py`.
"""

from __future__ import annotations

import time
from typing import Protocol

precise_seconds = time.perf_counter
"""For how long a piece of work of ours took, if that is less than a millisecond: no timer's time,
and none that a test or a simulator sets."""


processor_seconds = time.thread_time
"""What this thread has worked so far. It costs a system call, and does not count the time for which
the system let others run."""


class Clock(Protocol):
    """The time as the broker sees it."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""


class SystemClock:
    """The operating system's clocks."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""
        return time.monotonic_ns() // 1_000_000


class ManualClock:
    """A clock that moves only when advanced, for tests and the simulator.

    Args:
        now_ms: the wall time it starts at, in milliseconds since the epoch.
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._wall_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        return self._wall_ms

    def monotonic_ms(self) -> int:
        """Milliseconds that it was advanced so far."""
        return self._monotonic_ms

    def set_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock, forwards or backwards, while no time passes."""
        self._wall_ms = now_ms

    def advance(self, milliseconds: int) -> None:
        """Move both readings forward."""
        if milliseconds < 0:
            raise ValueError(f"a clock cannot go back by {-milliseconds} ms")
        self._wall_ms += milliseconds
        self._monotonic_ms += milliseconds
