"""Trio's own clock as odradek's, so that a test's clock moves both."""

from __future__ import annotations

import math

import trio

from ...runtime.clock import Clock, SystemClock


class TrioClock:
    """Monotonic time from trio, wall time from the system."""

    def __init__(self) -> None:
        self._wall = SystemClock()

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        return self._wall.now_ms()

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""
        return round(trio.current_time() * 1000)


def trio_deadline(clock: Clock, at_ms: int | None) -> float:
    """A moment of the clock as a deadline for trio's cancel scopes; None: never."""
    if at_ms is None:
        return math.inf
    return trio.current_time() + (at_ms - clock.monotonic_ms()) / 1000
