"""How many segments hold their file open: descriptors are few, and partitions may be many.

A segment opens its file when it is read or written, and keeps it for the next time. Beyond
the limit, those that were not used since they were last looked at are closed, as a clock's
hand goes round (Corbató's clock algorithm). A process has one limit for descriptors,
so there is one such count for a process.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Protocol

SHARE = 2
"""Of the process's descriptors, one in so many is for segments; connections have the rest."""

LIMIT_MIN = 64
LIMIT_MAX = 16_384


class Holder(Protocol):
    """A segment, as far as its open file is concerned."""

    was_used: bool
    """Set at each use, cleared when the hand passes."""

    @property
    def is_open(self) -> bool:
        """Whether it holds its file."""

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""


class OpenFiles:
    """Keeps the number of open segments within a limit. Any thread may open one.

    Args:
        limit: the most; None for a share of what the process may open.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._hand: deque[weakref.ref[Holder]] = deque()

    @property
    def limit(self) -> int:
        """How many may be open."""
        if self._limit is None:
            self._limit = _default_limit()
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit

    def opened(self, holder: Holder) -> None:
        """Take note of one more; others are closed if it is one too many."""
        holder.was_used = True
        with self._lock:
            self._hand.append(weakref.ref(holder))
            while len(self._hand) > self.limit:
                self._close_one()

    def _close_one(self) -> None:
        """Go round once at most: a full turn clears every mark."""
        for _ in range(len(self._hand) + 1):
            reference = self._hand.popleft()
            holder = reference()
            if holder is None or not holder.is_open:
                return
            if not holder.was_used:
                holder.close()
                return
            holder.was_used = False
            self._hand.append(reference)


def _default_limit() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return LIMIT_MAX
    return max(min(soft // SHARE, LIMIT_MAX), LIMIT_MIN)


OPEN_FILES = OpenFiles()
"""Of this process."""
