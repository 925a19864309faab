"""How long a run will still take."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from odradek.tools.benchmarks.compared.time_left import TimeLeft, in_words
from odradek.tools.benchmarks.compared.watching import Shown


def test_nothing_is_known_before_the_first_slot() -> None:
    assert TimeLeft([("a", "x")]).seconds() is None


def test_a_slot_takes_what_it_took_before_or_others_or_anything() -> None:
    left = TimeLeft([("a", "x")] * 3 + [("a", "y")] * 2 + [("b", "x")])
    left.took("a", "x", 10.0)
    left.took("a", "x", 20.0)
    assert left.seconds() == 15.0 + 2 * 15.0 + 15.0
    left.took("a", "y", 1.0)
    assert left.seconds() == pytest.approx(15.0 + 1.0 + (10.0 + 20.0 + 1.0) / 3)


def test_what_does_not_run_any_more_takes_no_time() -> None:
    left = TimeLeft([("a", "x")] * 2 + [("b", "x")] * 4)
    left.took("a", "x", 3.0)
    left.no_more("b", "x")
    assert left.seconds() == 3.0
    assert (left.planned, left.slots) == (6, 1)
    left.took("a", "x", 3.0)
    assert (left.slots, left.seconds()) == (0, 0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "time left not known yet"),
        (59.4, "about 59 s left"),
        (60.0, "about 1 min left"),
        (3_599.0, "about 59 min left"),
        (3_900.0, "about 1 h 5 min left"),
    ],
)
def test_the_time_left_is_reported_in_words(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words


def test_in_a_file_each_slot_is_followed_by_the_time_left() -> None:
    console = Console(file=io.StringIO(), width=100)
    with Shown(console, TimeLeft([("a", "x")] * 3)) as shown:
        shown.at("round 1")
        shown.say("[a] on x: 5/s")
        shown.took("a", "x", 40.0)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "[a] on x: 5/s",
        "  1 of 3 slots, about 1 min left",
    ]
