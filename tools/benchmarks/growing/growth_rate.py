"""How a figure grows with what it is measured over, said in a word and a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

FLAT_RATIO_MAX = 1.25
"""A cost whose largest figure is so many times that of its first value at most is flat."""
LINEAR_EXPONENT_MIN, LINEAR_EXPONENT_MAX = 0.8, 1.2
TAIL_POINTS = 3


class Growth(NamedTuple):
    """How a cost grows.

    Attributes:
        ratio: the last figure over the first.
        exponent: the slope between logarithms at the largest values, where what is constant
            weighs least: 0 is flat, 1 linear.
        word: flat, falling, slower than linear, linear, worse than linear.
    """

    ratio: float
    exponent: float
    word: str


def growth(values: Sequence[float], costs: Sequence[float]) -> Growth:
    """How costs grow with values.

    Args:
        values: ascending; a leading 0 counts for the ratio only.
        costs: positive, one for each value.
    """
    ratio = costs[-1] / costs[0]
    tail = [pair for pair in zip(values, costs, strict=True) if pair[0] > 0][-TAIL_POINTS:]
    exponent = _slope([(math.log(value), math.log(cost)) for value, cost in tail])
    return Growth(ratio, exponent, _word(ratio, max(costs) / costs[0], exponent))


def each_kilobytes(values: Sequence[float], megabytes: Sequence[float]) -> float:
    """Memory for one more of what grows, in kB of 1000 bytes, over the whole range."""
    return (megabytes[-1] - megabytes[0]) * 1000 / (values[-1] - values[0])


def _slope(points: Sequence[tuple[float, float]]) -> float:
    if len(points) < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread


def _word(ratio: float, largest: float, exponent: float) -> str:
    if largest <= FLAT_RATIO_MAX:
        return "flat" if ratio > 1 / FLAT_RATIO_MAX else "falling"
    if exponent > LINEAR_EXPONENT_MAX:
        return "worse than linear"
    return "linear" if exponent >= LINEAR_EXPONENT_MIN else "slower than linear"
