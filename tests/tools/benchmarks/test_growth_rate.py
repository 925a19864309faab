"""What the table of `tools/benchmarks/growth.py` says of a series."""

from __future__ import annotations

import pytest

from odradek.tools.benchmarks.growing.growth_rate import each_kilobytes, growth

VALUES = (1, 10, 100, 1000)


@pytest.mark.parametrize(
    ("costs", "word"),
    [
        ((20.0, 21.0, 19.0, 22.0), "flat"),
        ((40.0, 30.0, 22.0, 21.0), "falling"),
        ((20.0, 30.0, 45.0, 60.0), "slower than linear"),
        ((20.0, 110.0, 1010.0, 10_010.0), "linear"),
        ((20.0, 120.0, 10_020.0, 1_000_020.0), "worse than linear"),
    ],
)
def test_growth_is_called_by_what_it_is(costs: tuple[float, ...], word: str) -> None:
    assert growth(VALUES, costs).word == word


def test_the_exponent_is_that_of_the_largest_values() -> None:
    squared = growth(VALUES, [1.0 + value * value for value in VALUES])
    assert squared.exponent == pytest.approx(2, abs=0.01)


def test_a_series_may_begin_at_nothing() -> None:
    grown = growth((0, 10, 100, 1000), (5.0, 10.0, 100.0, 1000.0))
    assert grown.ratio == 200
    assert grown.exponent == pytest.approx(1)


def test_a_cost_that_rises_and_falls_again_is_not_flat() -> None:
    assert growth(VALUES, (20.0, 20.0, 60.0, 20.0)).word != "flat"


def test_memory_is_divided_by_what_was_added() -> None:
    assert each_kilobytes((0, 10, 1000), (40.0, 40.1, 42.0)) == pytest.approx(2)
