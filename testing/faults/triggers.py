"""When a fault strikes: which of the requests that it matches."""

from __future__ import annotations

import random
from typing import NamedTuple

ALWAYS = "always"
ON = "on"
TIMES = "times"
AFTER = "after"
EVERY = "every"
PROBABILITY = "probability"


class Trigger(NamedTuple):
    """When a fault strikes.

    Attributes:
        kind: one of the kinds above.
        number: of requests, or the probability.
        seed: of the chance.
    """

    kind: str = ALWAYS
    number: float = 0
    seed: int = 0

    def __str__(self) -> str:
        """As a part of a sentence."""
        count = int(self.number)
        if self.kind == ON:
            return f"on the {ordinal(count)} time"
        if self.kind == TIMES:
            return "once" if count == 1 else f"{count} times"
        if self.kind == AFTER:
            return f"from the {ordinal(count + 1)} time on"
        if self.kind == EVERY:
            return f"every {ordinal(count)} time"
        if self.kind == PROBABILITY:
            return f"with probability {self.number:g} (seed {self.seed})"
        return "until lifted"


class TriggerState:
    """A trigger on its way through the requests that a fault matches.

    Attributes:
        matches: how many there were.
    """

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger
        self._random = random.Random(trigger.seed)
        self.matches = 0

    def fires(self) -> bool:
        """Count one more request; returns whether the fault strikes it."""
        self.matches += 1
        kind, number = self._trigger.kind, self._trigger.number
        if kind == ON:
            return self.matches == number
        if kind == TIMES:
            return self.matches <= number
        if kind == AFTER:
            return self.matches > number
        if kind == EVERY:
            return self.matches % int(number) == 0
        if kind == PROBABILITY:
            return self._random.random() < number
        return True

    @property
    def is_spent(self) -> bool:
        """Whether the fault will strike no more."""
        return self._trigger.kind in (ON, TIMES) and self.matches >= self._trigger.number


def make_count(number: int, least: int = 1) -> int:
    """A number of requests.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise ValueError(f"a number of requests is a whole number from {least} on, not {number!r}")
    return number


def make_probability(probability: float) -> float:
    """A probability.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(probability, int | float) or not 0 <= probability <= 1:
        raise ValueError(f"a probability is between 0 and 1, not {probability!r}")
    return float(probability)


def ordinal(number: int) -> str:
    """ "1st", "2nd", "3rd", "11th"."""
    if number % 100 not in (11, 12, 13):
        ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
        if ending is not None:
            return f"{number}{ending}"
    return f"{number}th"
