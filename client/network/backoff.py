"""How long to wait before the next attempt: longer each time, and not all at once."""

from __future__ import annotations

from random import Random

MULTIPLIER = 2
JITTER = 0.2


class ExponentialBackoff:
    """`initial_ms` doubled with each attempt up to `max_ms`, give or take a fifth.

    Kafka's `ExponentialBackoff` with the base and jitter that its clients use (KIP-144,
    KIP-580); the jitter goes never beyond `max_ms`. Where `max_ms` is not above `initial_ms`,
    it is `max_ms` throughout, without jitter.

    Args:
        initial_ms: the first wait.
        max_ms: the longest.
        random: where the jitter comes from.
    """

    __slots__ = ("_initial_ms", "_max_ms", "_random")

    def __init__(self, initial_ms: int, max_ms: int, random: Random) -> None:
        self._initial_ms = min(initial_ms, max_ms)
        self._max_ms = max_ms
        self._random = random

    def wait_ms(self, attempts: int) -> int:
        """The wait after an attempt that `attempts` others have failed before."""
        if self._max_ms <= self._initial_ms:
            return self._initial_ms
        wait = self._initial_ms
        for _ in range(attempts):
            if wait >= self._max_ms:
                break
            wait = max(wait, 1) * MULTIPLIER
        wait = min(wait, self._max_ms)
        jittered = wait * self._random.uniform(1 - JITTER, 1 + JITTER)
        return min(int(jittered), self._max_ms)
