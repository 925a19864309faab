"""Waiting operations: what cannot be answered yet is parked here until it can (articles 001, 003).

A delayed operation completes exactly once: when something it watches made it satisfied,
or when its time ran out. Kafka's DelayedOperationPurgatory needs locks for that; here one
loop owns everything, so a flag will do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from ..runtime.timers import Timer, Timers

KeyT = TypeVar("KeyT", bound=Hashable)


class MonotonicClock(Protocol):
    """All that a purgatory asks of a clock."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""


class DelayedOperation:
    """One operation that waits. Subclasses say when it is satisfied and what completes it."""

    __slots__ = ("is_completed", "timer")

    def __init__(self) -> None:
        self.is_completed = False
        self.timer: Timer | None = None

    def is_satisfied(self) -> bool:
        """Whether it can complete now; asked whenever something it watches has changed."""
        raise AssertionError("every delayed operation says when it is satisfied")

    def on_complete(self) -> None:
        """Answer: called exactly once, whether satisfied or expired."""
        raise AssertionError("every delayed operation says what completes it")

    def force_complete(self) -> bool:
        """Complete now unless that has happened; returns whether this call did it."""
        if self.is_completed:
            return False
        self.is_completed = True
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.on_complete()
        return True

    def try_complete(self) -> bool:
        """Complete if satisfied; returns whether this call did it."""
        return not self.is_completed and self.is_satisfied() and self.force_complete()


class Purgatory(Generic[KeyT]):
    """The waiting operations of one kind, watched under the keys they depend on.

    Args:
        timers: where their time-outs wait.
        clock: gives the monotonic time that time-outs are counted from.
    """

    def __init__(self, timers: Timers, clock: MonotonicClock) -> None:
        self._timers = timers
        self._clock = clock
        self._watchers: dict[KeyT, list[DelayedOperation]] = {}

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[KeyT], timeout_ms: int
    ) -> bool:
        """Complete the operation if it is satisfied, else wait for `keys` or the time-out.

        Returns whether it completed at once.
        """
        if operation.try_complete():
            return True
        watchers = self._watchers
        for key in keys:
            waiting = watchers.get(key)
            if waiting is None:
                watchers[key] = [operation]
            else:
                if len(waiting) >= 8:  # completed through another key: drop them here
                    waiting[:] = [other for other in waiting if not other.is_completed]
                waiting.append(operation)
        deadline_ms = self._clock.monotonic_ms() + max(timeout_ms, 0)
        operation.timer = self._timers.schedule(deadline_ms, lambda: self._expire(operation))
        return False

    def check_and_complete(self, key: KeyT) -> int:
        """Ask every operation that watches `key`; returns how many completed."""
        waiting = self._watchers.get(key)
        if not waiting:
            return 0
        completed = 0
        for operation in list(waiting):
            if operation.try_complete():
                completed += 1
        still_waiting = [operation for operation in waiting if not operation.is_completed]
        if still_waiting:
            self._watchers[key] = still_waiting
        else:
            del self._watchers[key]
        return completed

    def watched(self, key: KeyT) -> int:
        """How many operations wait for `key`."""
        waiting = self._watchers.get(key, ())
        return sum(1 for operation in waiting if not operation.is_completed)

    def has_watchers(self, key: KeyT) -> bool:
        """Whether anything may wait for `key`: a quick look that a hot path can afford."""
        return key in self._watchers

    def _expire(self, operation: DelayedOperation) -> None:
        operation.timer = None
        operation.force_complete()
