"""Callbacks at given moments, driven by whoever owns the loop.

One `Timers` serves a whole broker: purgatories, session timeouts and periodic work all
wait in one heap, so the loop asks one question, when to wake up next. Nothing here
reads a clock; moments are monotonic milliseconds handed in.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count

from .clock import Clock

COMPACT_AT_LEAST = 256
"""Cancelled timers stay in the heap until they are this many and the majority."""


class Timer:
    """One callback to come. Cancelling it is constant work and may be done twice."""

    __slots__ = ("_owner", "at_ms", "callback", "in_heap")

    def __init__(self, owner: Timers, at_ms: int, callback: Callable[[], None]) -> None:
        self._owner = owner
        self.at_ms = at_ms
        self.callback: Callable[[], None] | None = callback
        self.in_heap = True

    def cancel(self) -> None:
        """Make sure that the callback is not called, if it has not been yet."""
        if self.callback is not None:
            self.callback = None
            if self.in_heap:
                self._owner._note_cancelled()


class Timers:
    """A heap of timers, those of one moment in the order they were scheduled.

    Attributes:
        failures: how often callbacks failed, by their names.
    """

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = count()
        self._cancelled = 0

    def schedule(self, at_ms: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` once `run_due` is given a time of `at_ms` or later.

        Args:
            at_ms: monotonic milliseconds; a moment already past is due at once.
            callback: takes nothing and returns nothing.
        """
        timer = Timer(self, at_ms, callback)
        heapq.heappush(self._heap, (at_ms, next(self._order), timer))
        return timer

    def next_deadline_ms(self) -> int | None:
        """The moment of the earliest pending timer, or None when there is none."""
        heap = self._heap
        while heap:
            at_ms, _, timer = heap[0]
            if timer.callback is not None:
                return at_ms
            heapq.heappop(heap)
            self._cancelled -= 1
        return None

    def run_due(self, now_ms: int, most: int = sys.maxsize) -> int:
        """Call what is due at `now_ms`; returns how many callbacks ran.

        Timers that a callback schedules for a moment already past wait for the next call,
        so one that re-arms itself cannot hold the loop.

        Args:
            now_ms: monotonic time.
            most: no more than so many; the others, which came due later, wait for the next call.

        Raises:
            ExceptionGroup: what callbacks raised, each with a note that names its callback, after
                all that were due have been called.
        """
        due: list[Timer] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ms and len(due) < most:
            timer = heapq.heappop(heap)[2]
            timer.in_heap = False
            if timer.callback is None:
                self._cancelled -= 1
            else:
                due.append(timer)
        ran = 0
        failures: list[Exception] = []
        for timer in due:
            callback = timer.callback
            if callback is None:  # an earlier callback of this round cancelled it
                continue
            timer.callback = None
            ran += 1
            try:
                callback()
            except Exception as failure:
                name = getattr(callback, "__qualname__", repr(callback))
                failure.add_note(f"timer callback {name} failed")
                self.failures[name] += 1
                failures.append(failure)
        if failures:
            raise ExceptionGroup("timers failed", failures)
        return ran

    def __len__(self) -> int:
        """How many timers are pending."""
        return len(self._heap) - self._cancelled

    def _note_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > COMPACT_AT_LEAST and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0


def repeat(
    timers: Timers, clock: Clock, interval_ms: Callable[[], int], callback: Callable[[], None]
) -> None:
    """Call `callback` again and again, an interval after it was last called, whatever it raises.

    Args:
        timers: where the next call waits.
        clock: the time.
        interval_ms: the interval, looked at before each call.
        callback: takes nothing and returns nothing.
    """

    def run() -> None:
        try:
            callback()
        finally:
            schedule()

    def schedule() -> None:
        timers.schedule(clock.monotonic_ms() + interval_ms(), run)

    run.__qualname__ = getattr(callback, "__qualname__", run.__qualname__)
    schedule()
