"""When a broker that has ended is started again, and when no more."""

from __future__ import annotations

from collections import deque
from typing import Final

BACKOFF_SECONDS_MIN: Final = 0.25
BACKOFF_SECONDS_MAX: Final = 10.0
RESTARTS_MAX: Final = 5
WINDOW_SECONDS: Final = 600.0
"""A broker may be started again `RESTARTS_MAX` times in so long. One that cannot live is given up
after ten seconds, one that dies every two minutes after ten minutes."""


class Restarts:
    """Counts how often one broker has ended, and says how long to wait before its next start.

    The first waits are short, since a broker that was killed by chance is to be back soon; each
    further end within the window doubles them.
    """

    def __init__(self) -> None:
        self._at: deque[float] = deque()

    def next_delay(self, now: float) -> float | None:
        """Seconds until the next start; None: it has ended too often.

        Args:
            now: seconds of a clock that never goes back.
        """
        while self._at and now - self._at[0] >= WINDOW_SECONDS:
            self._at.popleft()
        if len(self._at) >= RESTARTS_MAX:
            return None
        delay = min(BACKOFF_SECONDS_MIN * 2.0 ** len(self._at), BACKOFF_SECONDS_MAX)
        self._at.append(now)
        return delay
