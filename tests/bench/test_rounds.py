"""Which slots count, what is done again, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.bench.errors import BenchError, Unavailable
from odradek.bench.figures import Figures
from odradek.bench.loads.load import Load
from odradek.bench.run.calibration import CALIBRATIONS_BEFORE, TRIES_MAX, Calibration
from odradek.bench.run.rounds import Rounds, Slot, medians


class Heard:
    """Keeps what a watcher hears."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def begin(self, where: str, load: Load) -> None:
        self.lines.append((where, load.name))

    def end(self, slot: Slot) -> None:
        self.lines.append(slot.figures["rate"])

    def drop(self, load: Load, why: str) -> None:
        self.lines.append(why)


def load(name: str) -> Load:
    return Load(name, "", lambda target, seconds: {})


def rounds_of(
    rates: Iterator[float], calibrations: list[float], tries_max: int = TRIES_MAX
) -> Rounds:
    """Rounds over loads with these rates, on a machine that takes these times."""
    times = iter([1.0] * CALIBRATIONS_BEFORE + calibrations)
    calibration = Calibration(tries_max, lambda: next(times))
    return Rounds(lambda _: {"rate": next(rates)}, Heard(), calibration)


def test_slot_that_something_slowed_is_done_again() -> None:
    rounds = rounds_of(iter([10.0, 20.0]), [1.0, 2.0, 1.0, 1.1])
    rounds.run([load("a")], 1)
    assert [slot.figures["rate"] for slot in rounds.slots] == [20.0]
    assert (rounds.calibration.repeated, rounds.calibration.slowed) == (1, 0)


def test_least_slowed_slot_counts_where_nothing_helps() -> None:
    rounds = rounds_of(iter([1.0, 2.0, 3.0]), [1.0, 3.0, 1.0, 1.5, 1.0, 2.0])
    rounds.run([load("a")], 1)
    assert [slot.figures["rate"] for slot in rounds.slots] == [2.0]
    assert rounds.slots[0].slowed_by == pytest.approx(1.5)
    assert (rounds.calibration.repeated, rounds.calibration.slowed) == (2, 1)


def test_quick_run_does_nothing_again() -> None:
    rounds = rounds_of(iter([1.0]), [1.0, 3.0], tries_max=1)
    rounds.run([load("a")], 1)
    assert (len(rounds.slots), rounds.calibration.repeated, rounds.calibration.slowed) == (1, 0, 1)


def test_load_that_fails_is_not_run_again_and_others_are() -> None:
    tried: list[str] = []

    def measure(each: Load) -> Figures:
        tried.append(each.name)
        if each.name == "broken":
            raise BenchError("it refused")
        if each.name == "absent":
            raise Unavailable("it has none")
        return {"rate": 1.0}

    heard = Heard()
    rounds = Rounds(measure, heard, Calibration(calibration=lambda: 1.0))
    rounds.run([load("broken"), load("absent"), load("good")], 2)
    assert tried == ["broken", "absent", "good", "good"]
    assert rounds.failures == {"broken": "it refused"}
    assert rounds.left_out == {"absent": "it has none"}
    assert heard.lines[:2] == [("round 1 of 2", "broken"), "it refused"]


def test_medians_are_by_load_and_figure() -> None:
    figures = [{"rate": 1.0, "p50_ms": 9.0}, {"rate": 5.0, "p50_ms": 7.0}, {"rate": 2.0}]
    slots = [Slot("a", each, 1.0) for each in figures] + [Slot("b", {"ready_s": 0.2}, 1.0)]
    assert medians(slots) == {"a": {"rate": 2.0, "p50_ms": 8.0}, "b": {"ready_s": 0.2}}
