"""Rounds: every load again and again, and which of the slots count."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ..errors import BenchError, Unavailable
from ..figures import Figures
from ..loads.load import Load

SLOWED = 1.15
"""A slot around which a fixed piece of work took so much longer than at its best is done again."""
TRIES_MAX = 3
CALIBRATIONS_BEFORE = 5


class Slot(NamedTuple):
    """A load, measured once.

    Attributes:
        load: its name.
        figures: what came of it.
        slowed_by: how much longer than at its best a fixed piece of work took around it.
    """

    load: str
    figures: Figures
    slowed_by: float


class Watcher(Protocol):
    """Hears what goes on."""

    def begin(self, where: str, load: Load) -> None:
        """A slot begins."""

    def end(self, slot: Slot) -> None:
        """It was measured."""

    def drop(self, load: Load, why: str) -> None:
        """The load is not run again."""


def calibrate() -> float:
    """Seconds that a fixed piece of work takes: tells a machine that others use."""
    began = time.perf_counter()
    sum(i * i for i in range(1_000_000))
    return time.perf_counter() - began


class Rounds:
    """Runs loads, and keeps the slots that nobody else slowed.

    Args:
        measure: runs a load once. Raises: BenchError.
        watcher: hears of it.
        tries_max: how often a slot is done at most, if something slows it each time.
        calibration: seconds of a fixed piece of work, measured when called.

    Attributes:
        slots: what was measured.
        again: how many slots were done again, since something slowed them.
        slowed: how many of `slots` something slowed in every try.
        left_out: why a load cannot be run here, by name.
        failures: why a load failed, by name.
    """

    def __init__(
        self,
        measure: Callable[[Load], Figures],
        watcher: Watcher,
        tries_max: int = TRIES_MAX,
        calibration: Callable[[], float] = calibrate,
    ) -> None:
        self.slots: list[Slot] = []
        self.again = 0
        self.slowed = 0
        self.left_out: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._measure = measure
        self._watcher = watcher
        self._tries_max = tries_max
        self._calibrate = calibration
        self._best = min(calibration() for _ in range(CALIBRATIONS_BEFORE))

    def run(self, loads: Sequence[Load], rounds: int) -> None:
        """Every load once, and that `rounds` times; one that fails is not tried again."""
        for number in range(rounds):
            for load in loads:
                if load.name in self.left_out or load.name in self.failures:
                    continue
                self._watcher.begin(f"round {number + 1} of {rounds}", load)
                try:
                    slot = self._least_slowed(load)
                except Unavailable as error:
                    self.left_out[load.name] = str(error)
                    self._watcher.drop(load, str(error))
                except BenchError as error:
                    self.failures[load.name] = str(error)
                    self._watcher.drop(load, str(error))
                else:
                    self.slots.append(slot)
                    self._watcher.end(slot)

    def _least_slowed(self, load: Load) -> Slot:
        tried: list[Slot] = []
        for _ in range(self._tries_max):
            before = self._calibrate()
            figures = self._measure(load)
            after = self._calibrate()
            self._best = min(self._best, before, after)
            tried.append(Slot(load.name, figures, max(before, after) / self._best))
            if tried[-1].slowed_by <= SLOWED:
                break
        else:  # a machine that is never quiet: the least disturbed is better than none
            self.slowed += 1
        self.again += len(tried) - 1
        return min(tried, key=lambda slot: slot.slowed_by)


def medians(slots: Sequence[Slot]) -> dict[str, Figures]:
    """Each figure's median over the slots of a load, by its name, in their order."""
    by_load: dict[str, list[Figures]] = {}
    for slot in slots:
        by_load.setdefault(slot.load, []).append(slot.figures)
    return {
        load: {
            name: statistics.median(each[name] for each in found if name in each)
            for name in found[0]
        }
        for load, found in by_load.items()
    }
