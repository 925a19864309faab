"""Appends on their way, so that a reader who must not see an unsettled state can wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class InFlight:
    """Counts the appends of one group, which end in the order in which they began."""

    __slots__ = ("_begun", "_finished", "_waiting")

    def __init__(self) -> None:
        self._begun = 0
        self._finished = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way."""
        return self._begun == self._finished

    def begin(self) -> None:
        """An append was handed to the log."""
        self._begun += 1

    def finish(self) -> None:
        """An append ended, well or not."""
        self._finished += 1
        while self._waiting and self._waiting[0][0] <= self._finished:
            self._waiting.popleft()[1]()

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` when all that is on its way now has ended: at once if nothing is."""
        if self.is_settled:
            callback()
        else:
            self._waiting.append((self._begun, callback))
