"""How long a run will still take, from how long its slots took so far."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable

SECONDS_OF_A_MINUTE = 60
MINUTES_OF_AN_HOUR = 60


class TimeLeft:
    """An estimate that gets better with each slot.

    Args:
        planned: load and peer of each slot that is to come.
    """

    def __init__(self, planned: Iterable[tuple[str, str]]) -> None:
        self._left = Counter(planned)
        self._took: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.planned = self._left.total()

    @property
    def slots(self) -> int:
        """How many are to come."""
        return self._left.total()

    def took(self, load: str, peer: str, seconds: float) -> None:
        """One of them was done."""
        self._took[load, peer].append(seconds)
        if self._left[load, peer] > 0:
            self._left[load, peer] -= 1

    def no_more(self, load: str, peer: str) -> None:
        """A load will not be run on a peer again."""
        del self._left[load, peer]

    def seconds(self) -> float | None:
        """What is left; None before anything was done.

        A slot takes what it took that peer before, or other peers, or what any slot took.
        """
        everything = [each for times in self._took.values() for each in times]
        if not everything:
            return None
        return sum(
            count * self._expected(load, peer, everything)
            for (load, peer), count in self._left.items()
            if count
        )

    def _expected(self, load: str, peer: str, everything: list[float]) -> float:
        own = self._took.get((load, peer))
        others = [each for (name, _), times in self._took.items() if name == load for each in times]
        return statistics.mean(own or others or everything)


def in_words(seconds: float | None) -> str:
    """As `about 1 h 5 min left`."""
    if seconds is None:
        return "time left not known yet"
    minutes, rest = divmod(round(seconds), SECONDS_OF_A_MINUTE)
    hours, minutes = divmod(minutes, MINUTES_OF_AN_HOUR)
    if hours:
        return f"about {hours} h {minutes} min left"
    return f"about {minutes} min left" if minutes else f"about {rest} s left"
