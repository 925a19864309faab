"""Waiting operations: what cannot be answered yet is parked here until it can (articles 001, 003).

A delayed operation completes exactly once: when something it watches made it satisfied,
or when its time ran out. Kafka's DelayedOperationPurgatory needs locks for that; here one
loop owns everything, so a flag will do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from ...runtime.timers import Timer, Timers

KeyT = TypeVar("KeyT", bound=Hashable)

WATCHERS_KEPT_MIN = 8
"""A list of watchers this short is not looked through for completed ones."""


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
        """Whether it can complete now; called whenever something it watches has changed."""
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

    def try_complete(self, key: Hashable = None) -> bool:
        """Complete if satisfied; returns whether this call did it.

        Args:
            key: all that has changed since the last try; None: anything.
        """
        return not self.is_completed and self.is_satisfied() and self.force_complete()


class Watchers:
    """The operations that wait for one key, and some that completed through another.

    Those are dropped when the list has doubled, so that adding costs the same however many
    there are.
    """

    __slots__ = ("_drop_at", "operations")

    def __init__(self) -> None:
        self.operations: list[DelayedOperation] = []
        self._drop_at = WATCHERS_KEPT_MIN

    def add(self, operation: DelayedOperation) -> None:
        """Have the operation tried whenever the key is checked."""
        if len(self.operations) >= self._drop_at:
            self.drop_completed()
        self.operations.append(operation)

    def drop_completed(self) -> None:
        """Forget the operations that are completed."""
        self.operations = [each for each in self.operations if not each.is_completed]
        self._drop_at = max(WATCHERS_KEPT_MIN, 2 * len(self.operations))


class Purgatory(Generic[KeyT]):
    """The waiting operations of one kind, watched under the keys they depend on.

    Args:
        timers: where their time-outs wait.
        clock: gives the monotonic time that time-outs are counted from.
    """

    def __init__(self, timers: Timers, clock: MonotonicClock) -> None:
        self._timers = timers
        self._clock = clock
        self._watchers: dict[KeyT, Watchers] = {}

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[KeyT], timeout_ms: int
    ) -> bool:
        """Complete the operation if it is satisfied, else wait for `keys` or the time-out.

        Returns whether it completed at once.
        """
        if operation.try_complete():
            return True
        self.watch(operation, keys, timeout_ms)
        return False

    def watch(self, operation: DelayedOperation, keys: Iterable[KeyT], timeout_ms: int) -> None:
        """Have an operation that cannot be satisfied yet wait for `keys` or the time-out."""
        watchers = self._watchers
        for key in dict.fromkeys(keys):
            waiting = watchers.get(key)
            if waiting is None:
                waiting = watchers[key] = Watchers()
            waiting.add(operation)
        deadline_ms = self._clock.monotonic_ms() + max(timeout_ms, 0)
        operation.timer = self._timers.schedule(deadline_ms, lambda: self._expire(operation))

    def check_and_complete(self, key: KeyT) -> int:
        """Ask every operation that watches `key`; returns how many completed."""
        waiting = self._watchers.get(key)
        if waiting is None:
            return 0
        completed = 0
        for operation in list(waiting.operations):
            if operation.try_complete(key):
                completed += 1
        waiting.drop_completed()
        if not waiting.operations and self._watchers.get(key) is waiting:
            del self._watchers[key]
        return completed

    def watched(self, key: KeyT) -> int:
        """How many operations wait for `key`."""
        waiting = self._watchers.get(key)
        if waiting is None:
            return 0
        return sum(1 for operation in waiting.operations if not operation.is_completed)

    def has_watchers(self, key: KeyT) -> bool:
        """Whether anything may wait for `key`: cheap enough for a hot path."""
        return key in self._watchers

    def sizes(self) -> tuple[int, int]:
        """How many operations wait, and how many entries there are in the lists of keys.

        One that watches several keys has several entries, and some have completed through
        another key (Kafka's NumDelayedOperations and PurgatorySize).
        """
        entries = [each for waiting in self._watchers.values() for each in waiting.operations]
        return len({id(each) for each in entries if not each.is_completed}), len(entries)

    def _expire(self, operation: DelayedOperation) -> None:
        operation.timer = None
        operation.force_complete()
