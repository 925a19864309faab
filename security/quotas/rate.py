"""How fast something happens, over a sliding window, and how long to wait until it is slow enough.

`QuotaSensor` is Kafka's Sensor with a Rate over a WindowedSum, a bound, and the throttle time of
QuotaUtils; `TokenBucket` is Kafka's of the same name (KIP-599). Times are arguments.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

UNBOUNDED: Final = math.inf


class ThrottleTimes:
    """How long clients were made to wait.

    Args:
        of_all: takes the same of all clients; None: nobody asks for it.

    Attributes:
        throttle_ms_sum: in all.
        throttle_count: how often.
    """

    __slots__ = ("_of_all", "throttle_count", "throttle_ms_sum")

    def __init__(self, of_all: ThrottleTimes | None = None) -> None:
        self.throttle_ms_sum = 0
        self.throttle_count = 0
        self._of_all = of_all

    def note_throttled(self, throttle_ms: int) -> None:
        """A client is made to wait."""
        self.throttle_ms_sum += throttle_ms
        self.throttle_count += 1
        if self._of_all is not None:
            self._of_all.note_throttled(throttle_ms)

    @property
    def throttle_ms_average(self) -> float:
        """Of the times that were not zero."""
        return self.throttle_ms_sum / (self.throttle_count or 1)


class QuotaSensor(ThrottleTimes):
    """Measures one rate against a bound.

    What is recorded is kept in samples, each of a window's length. The rate is that of all samples
    that had an event within the time of `windows_max` windows; less than all but one of these
    windows is never taken for its time, so that a first burst is no high rate.

    Args:
        bound: units a second.
        windows_max: how many windows count (`quota.window.num`).
        window_ms: how long each is (`quota.window.size.seconds`).
        throttle_ms_max: no throttle time is longer; None: any may be.
        of_all: takes what is noted of all clients.

    Attributes:
        last_ms: when something was recorded last.
    """

    __slots__ = (
        "_bound",
        "_closed",
        "_current",
        "_current_ends_ms",
        "_current_max",
        "_current_start_ms",
        "_throttle_ms_max",
        "_window_ms",
        "_windows_max",
        "last_ms",
    )

    def __init__(
        self,
        bound: float,
        windows_max: int,
        window_ms: int,
        throttle_ms_max: int | None = None,
        of_all: ThrottleTimes | None = None,
    ) -> None:
        super().__init__(of_all)
        self._bound = bound
        self._windows_max = windows_max
        self._window_ms = window_ms
        self._throttle_ms_max = throttle_ms_max
        self._closed: deque[tuple[int, int, float]] = deque()
        """Samples before the current one: their starts, last events and sums."""
        self._current = 0.0
        self._current_start_ms = self._current_ends_ms = -1
        self._current_max = 0.0
        """With no more in the current sample the bound is kept, whatever the time is."""
        self.last_ms = 0

    @property
    def bound(self) -> float:
        """Units a second."""
        return self._bound

    @bound.setter
    def bound(self, bound: float) -> None:
        self._bound = bound
        self._note_current_max()

    @property
    def burst(self) -> float:
        """As much fits into an empty window without a throttle time."""
        return self._bound * (self._windows_max - 1) * self._window_ms / 1000

    def record(self, value: float, now_ms: int) -> int:
        """Count some units; returns for how many ms whoever has used them is to wait.

        Args:
            value: how many.
            now_ms: monotonic time.
        """
        if now_ms >= self._current_ends_ms:
            self._begin_sample(now_ms)
        self.last_ms = now_ms
        self._current = current = self._current + value
        if current <= self._current_max:
            return 0
        return self.throttle_ms(now_ms)

    def unrecord(self, value: float) -> None:
        """Take back what was recorded just now."""
        self._current -= value

    def rate(self, now_ms: int) -> float:
        """Units a second."""
        self._purge(now_ms)
        return self._total() * 1000 / self._elapsed_ms(now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """How long until the rate is down to the bound, if nothing more is recorded.

        O is the rate over a time W, and T the bound: O * W / (W + X) = T where
        X = (O - T) / T * W.
        """
        rate, bound = self.rate(now_ms), self._bound
        if not bound:  # nothing at all is allowed
            return self._throttle_ms_max or self._window_ms
        if rate <= bound:
            return 0
        throttle_ms = math.floor((rate - bound) / bound * self._elapsed_ms(now_ms) + 0.5)
        most = self._throttle_ms_max
        return throttle_ms if most is None else min(throttle_ms, most)

    def _begin_sample(self, now_ms: int) -> None:
        closed = self._closed
        if self._current_start_ms >= 0:
            closed.append((self._current_start_ms, self._current_last_ms, self._current))
            if len(closed) > self._windows_max:  # one more than count, as one may overlap
                closed.popleft()
        self._restart_sample(now_ms)
        self._purge(now_ms)

    def _restart_sample(self, now_ms: int) -> None:
        self._current = 0.0
        self._current_start_ms = now_ms
        self._current_ends_ms = now_ms + self._window_ms

    def _purge(self, now_ms: int) -> None:
        """Forget samples whose last event is too long ago."""
        oldest_ms = now_ms - self._windows_max * self._window_ms
        closed = self._closed
        while closed and closed[0][1] <= oldest_ms:
            closed.popleft()
        if self._current_start_ms < 0 or self._current_last_ms <= oldest_ms:
            self._restart_sample(now_ms)
        self._note_current_max()

    @property
    def _current_last_ms(self) -> int:
        """When the current sample had its last event; its beginning is one, as in Kafka. Only
        `record` moves `last_ms`: whoever reads the rate does not use the quota."""
        return max(self._current_start_ms, self.last_ms)

    def _note_current_max(self) -> None:
        self._current_max = self.burst - sum(each[2] for each in self._closed)

    def _total(self) -> float:
        return sum(each[2] for each in self._closed) + self._current

    def _elapsed_ms(self, now_ms: int) -> int:
        """The time that the samples are taken for."""
        start_ms = self._closed[0][0] if self._closed else self._current_start_ms
        elapsed_ms = now_ms - start_ms
        missing = self._windows_max - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)


class TokenBucket(ThrottleTimes):
    """Tokens that come back at a rate, up to a number, and may be owed (Kafka's TokenBucket).

    Args:
        bound: tokens a second.
        windows_max: `controller.quota.window.num`.
        window_ms: `controller.quota.window.size.seconds`; so many tokens as come in all windows
            are kept at most.
        now_ms: monotonic time; the bucket is full.
        of_all: takes what is noted of all clients.
    """

    __slots__ = (
        "_last_ms",
        "_seconds",
        "_tokens",
        "bound",
        "last_ms",
    )

    def __init__(
        self,
        bound: float,
        windows_max: int,
        window_ms: int,
        now_ms: int,
        of_all: ThrottleTimes | None = None,
    ) -> None:
        super().__init__(of_all)
        self.bound = bound
        self._seconds = windows_max * window_ms / 1000
        self._tokens = bound * self._seconds
        self._last_ms = self.last_ms = now_ms

    def tokens(self, now_ms: int) -> float:
        """How many there are; below zero: how many are owed."""
        refilled = self._tokens + self.bound * (now_ms - self._last_ms) / 1000
        self._tokens = min(self.bound * self._seconds, refilled)
        self._last_ms = now_ms
        return self._tokens

    def record(self, value: float, now_ms: int) -> int:
        """Take tokens, more than there are if need be; returns for how many ms to wait."""
        self._tokens = self.tokens(now_ms) - value
        self.last_ms = now_ms
        return self.throttle_ms(now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """How long until nothing is owed."""
        return max(math.floor(-self.tokens(now_ms) / self.bound * 1000 + 0.5), 0)
