"""Limits the speed of the cleaner's thread, and cancels it.

It rests for two reasons: to let the broker's loop have the interpreter, and to stay below
`log.cleaner.io.max.bytes.per.second` (Kafka's Throttler).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...runtime.clock import Clock

YIELD_SECONDS = 0.0001
"""After each millisecond of work. Long enough for the loop's thread to wake up and take the
interpreter, which it would wait five milliseconds for otherwise."""

THROTTLE_CHECK_MS = 300
"""Kafka's interval: the rate is held on average over so long."""

REST_SECONDS_MAX = 0.1
"""Rests are cut into such pieces, so that a stopping broker need not wait for one."""


class CleaningCancelled(Exception):
    """The broker stops, or the log was deleted or truncated: what was done so far is void."""


class CleanerThrottler:
    """Shared by the loop, which cancels, and the cleaner's thread, which checks.

    Args:
        clock: the monotonic one paces.
        rest: waits for so many seconds without holding the interpreter.
        bytes_per_second: read and written together.
    """

    def __init__(
        self, clock: Clock, rest: Callable[[float], None], bytes_per_second: float = math.inf
    ) -> None:
        self._clock = clock
        self._rest = rest
        self.bytes_per_second = bytes_per_second
        """May be changed while the thread runs."""
        self.is_cancelled = False
        self._yielded_ms = self._period_start_ms = clock.monotonic_ms()
        self._period_bytes = 0

    def cancel(self) -> None:
        """End the thread at its next step."""
        self.is_cancelled = True

    def yield_interpreter(self) -> None:
        """Let others have the interpreter, if the last time was a while ago.

        Raises:
            CleaningCancelled: `cancel` was called.
        """
        if self.is_cancelled:
            raise CleaningCancelled
        if self._clock.monotonic_ms() != self._yielded_ms:
            self._rest(YIELD_SECONDS)
            self._yielded_ms = self._clock.monotonic_ms()

    def maybe_throttle(self, bytes_count: int) -> None:
        """So much was read or written: rest, if that was too fast.

        Raises:
            CleaningCancelled: `cancel` was called.
        """
        self.yield_interpreter()
        self._period_bytes += bytes_count
        elapsed_ms = self._clock.monotonic_ms() - self._period_start_ms
        if elapsed_ms < THROTTLE_CHECK_MS and self._period_bytes < self.bytes_per_second:
            return
        seconds = self._period_bytes / self.bytes_per_second - elapsed_ms / 1000
        while seconds > 0:
            if self.is_cancelled:
                raise CleaningCancelled
            self._rest(min(seconds, REST_SECONDS_MAX))
            seconds -= REST_SECONDS_MAX
        self._period_start_ms = self._clock.monotonic_ms()
        self._period_bytes = 0
