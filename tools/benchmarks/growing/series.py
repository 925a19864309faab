"""A series: what grows, over which values, and how a broker is measured at each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..measure import MeasuredBroker

Figures = dict[str, float]
"""By name: `rate` in requests a second, `cpu_us` the broker's own processor time for one of them,
`memory_mb` its resident memory, `idle_percent` of a core while nobody asks anything."""

Measure = Callable[[MeasuredBroker, Sequence[int], float], Iterator[Figures]]
"""`measure(broker, values, seconds)` goes through ascending values and yields each one's figures.
The broker is fresh; `seconds` is how long each load goes on."""


class Series(NamedTuple):
    """One panel of the picture.

    Attributes:
        name: of the series.
        grows: what the values count.
        values: ascending.
        constant: what stays the same.
        measure: see `Measure`.
        each: what memory is divided by: one of what grows; None if memory tells nothing.
        settings: of the broker, `name=value`.
        may_grow: why the cost of a request rises with the values by its nature; None if it
            should not.
    """

    name: str
    grows: str
    values: tuple[int, ...]
    constant: str
    measure: Measure
    each: str | None = None
    settings: tuple[str, ...] = ()
    may_grow: str | None = None
