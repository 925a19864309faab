"""What a load is: a name, a line about it, and a function from a target to figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..figures import Figures
from ..target import BenchTarget

WARM_UP_SHARE = 0.25
"""So much of a load's time again goes before the clock starts: caches, and Java's compiler."""


class Load(NamedTuple):
    """One row of the table.

    Attributes:
        name: unique.
        about: what it does, in a line.
        run: measures a target for so many seconds. Raises BenchError, or Unavailable where the
            broker or this machine lacks what it needs.
        starts_broker: whether it starts a broker of its own and leaves the target alone.
    """

    name: str
    about: str
    run: Callable[[BenchTarget, float], Figures]
    starts_broker: bool = False
