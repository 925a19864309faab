"""Trying something again until it works, is hopeless, or takes too long."""

from __future__ import annotations

from random import Random

import trio

from ...runtime.clock import Clock
from ..settings import ClientSettings
from .backoff import ExponentialBackoff


class Attempts:
    """The pauses between attempts at one thing (`retry.backoff.ms`, KIP-580).

    Args:
        settings: the backoff.
        clock: the time.
        random: its jitter.
        timeout_ms: for all attempts together.
    """

    def __init__(
        self, settings: ClientSettings, clock: Clock, random: Random, timeout_ms: int
    ) -> None:
        self._backoff = ExponentialBackoff(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, random
        )
        self._clock = clock
        self._deadline_ms = clock.monotonic_ms() + timeout_ms
        self._failed = 0

    @property
    def remaining_ms(self) -> int:
        """How much of the time is left."""
        return max(self._deadline_ms - self._clock.monotonic_ms(), 0)

    async def pause(self, failure: Exception) -> None:
        """Wait before the next attempt.

        Args:
            failure: why another is needed.

        Raises:
            Exception: that failure, if there is no time left for another attempt.
        """
        wait_ms = self._backoff.wait_ms(self._failed)
        self._failed += 1
        if wait_ms >= self.remaining_ms:
            raise failure
        await trio.sleep(wait_ms / 1000)
