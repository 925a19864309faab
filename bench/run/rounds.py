"""Rounds: every load again and again, and which of the slots count."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from ..errors import BenchError, Unavailable
from ..figures import Figures
from ..loads.load import Load
from .calibration import Calibration


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


class Rounds:
    """Runs loads, and keeps the slots that nobody else slowed.

    Args:
        measure: runs a load once. Raises: BenchError.
        watcher: hears of it.
        calibration: finds quiet moments.

    Attributes:
        slots: what was measured.
        calibration: counts the slots that were repeated or slowed.
        left_out: why a load cannot be run here, by name.
        failures: why a load failed, by name.
    """

    def __init__(
        self,
        measure: Callable[[Load], Figures],
        watcher: Watcher,
        calibration: Calibration | None = None,
    ) -> None:
        self.slots: list[Slot] = []
        self.calibration = calibration or Calibration()
        self.left_out: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._measure = measure
        self._watcher = watcher

    def run(self, loads: Sequence[Load], rounds: int) -> None:
        """Every load once, and that `rounds` times; one that fails is not tried again."""
        for number in range(rounds):
            for load in loads:
                if load.name in self.left_out or load.name in self.failures:
                    continue
                self._watcher.begin(f"round {number + 1} of {rounds}", load)
                try:
                    figures, slowed_by = self.calibration.least_slowed(partial(self._measure, load))
                except Unavailable as error:
                    self.left_out[load.name] = str(error)
                    self._watcher.drop(load, str(error))
                except BenchError as error:
                    self.failures[load.name] = str(error)
                    self._watcher.drop(load, str(error))
                else:
                    slot = Slot(load.name, figures, slowed_by)
                    self.slots.append(slot)
                    self._watcher.end(slot)


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
