"""Whether something else slowed a measurement, and measuring again where it did.

A fixed piece of work is timed before and after each measurement. Where it took much longer than
at its best, another process had the processor, and the measurement is made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

SLOWED = 1.15
"""A measurement around which the fixed work took so much longer than at its best is repeated."""
TRIES_MAX = 3
CALIBRATIONS_BEFORE = 5
ITERATIONS = 1_000_000


def calibrate() -> float:
    """Seconds that a fixed piece of work takes."""
    began = time.perf_counter()
    sum(i * i for i in range(ITERATIONS))
    return time.perf_counter() - began


class Calibration:
    """Measures in quiet moments.

    Args:
        tries_max: measurements at most, if something slows each of them.
        calibration: seconds of a fixed piece of work, measured when called.

    Attributes:
        repeated: measurements that were repeated because something slowed them.
        slowed: measurements that are kept though something slowed every try.
    """

    def __init__(
        self, tries_max: int = TRIES_MAX, calibration: Callable[[], float] = calibrate
    ) -> None:
        self.repeated = 0
        self.slowed = 0
        self._tries_max = tries_max
        self._calibrate = calibration
        self._best = min(calibration() for _ in range(CALIBRATIONS_BEFORE))

    def least_slowed(self, measure: Callable[[], Result]) -> tuple[Result, float]:
        """Measure until a try was quiet.

        Returns:
            The least slowed try's result, and how much longer than at its best the fixed work
            took around it.
        """
        tried: list[tuple[Result, float]] = []
        for _ in range(self._tries_max):
            before = self._calibrate()
            result = measure()
            after = self._calibrate()
            self._best = min(self._best, before, after)
            tried.append((result, max(before, after) / self._best))
            if tried[-1][1] <= SLOWED:
                break
        else:  # a machine that is never quiet: the least disturbed is better than none
            self.slowed += 1
        self.repeated += len(tried) - 1
        return min(tried, key=lambda each: each[1])
