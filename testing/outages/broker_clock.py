"""A broker's time, which a test may advance."""

from __future__ import annotations

import time


class BrokerClock:
    """The operating system's clocks, and what a test has added to them.

    Args:
        ahead_ms: how much was added before, by a broker that this one goes on for.

    Attributes:
        ahead_ms: how far its wall time is ahead of the system's; its monotonic time is so far
            ahead, too, or farther.
        skew_ms: how wrong its wall time is besides, as of a machine that nobody has set.
    """

    def __init__(self, ahead_ms: int = 0, skew_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms
        self.skew_ms = skew_ms
        self._passed_ms = ahead_ms

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000 + self.ahead_ms + self.skew_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""
        return time.monotonic_ns() // 1_000_000 + self._passed_ms

    def advance(self, milliseconds: int) -> None:
        """Let time have passed, on both readings.

        Raises:
            ValueError: time does not go back.
        """
        if milliseconds < 0:
            raise ValueError(f"time cannot go back by {-milliseconds} ms")
        self.ahead_ms += milliseconds
        self._passed_ms += milliseconds

    def set_right(self) -> None:
        """Have wall time be the system's again; for a broker that keeps nothing it was stamped on.

        The time that has passed has passed all the same.
        """
        self.ahead_ms = self.skew_ms = 0
