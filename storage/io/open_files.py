"""How many segments hold their file open: descriptors are few, and partitions may be many.

A segment opens its file when it is read or written, and keeps it for the next time. Beyond
the limit, those that were not used since they were last looked at are closed, as a clock's
hand goes round (Corbató's clock algorithm); from time to time they are closed below it, too, so
that idle partitions hold none. A process has one limit for descriptors, so there is one such count
for a process.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from .file_slice import FileSlice
from .files import StorageFile

SHARE = 2
"""Of the process's descriptors, one in so many is for segments; connections have the rest."""

LIMIT_MIN = 64
LIMIT_MAX = 16_384
UNUSED_PER_LOOK = 1_000
NEVER: Final = 1 << 30


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

    Attributes:
        scarce_from: a file with a descriptor of this number shows that files which closed
            segments have lent to slices take more than was planned for all.
        is_scarce: whether the last one that was opened had such a number.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._hand: deque[weakref.ref[Holder]] = deque()
        self.scarce_from = NEVER
        self.is_scarce = False

    @property
    def limit(self) -> int:
        """How many may be open."""
        if self._limit is None:
            self._limit = _default_limit()
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit

    @contextmanager
    def count_anew(self, limit: int) -> Iterator[None]:
        """Know nothing of what happened before, and nothing of this later; for who replays it."""
        former = self._limit, self._hand, self.scarce_from, self.is_scarce
        self._limit, self._hand, self.scarce_from, self.is_scarce = limit, deque(), NEVER, False
        try:
            yield
        finally:
            self._limit, self._hand, self.scarce_from, self.is_scarce = former

    def opened(self, holder: Holder, file: StorageFile) -> None:
        """Take note of one more; others are closed if it is one too many."""
        holder.was_used = True
        if self.scarce_from < NEVER:
            self.is_scarce = file.fileno() >= self.scarce_from
        with self._lock:
            self._hand.append(weakref.ref(holder))
            while len(self._hand) > self.limit:
                self._close_one()

    def into_memory(self, holder: Holder, records: FileSlice) -> bytes:
        """Read a slice of the last file that was opened, and close that.

        An answer may hold slices of more files than may be open. Those that come after the
        descriptors have become scarce are read at once.

        Raises:
            StorageError: the disk fails.
        """
        self.is_scarce = False
        data = records.read()
        holder.close()
        return data

    def close_unused(self, most: int = UNUSED_PER_LOOK) -> None:
        """Look at some in turn, and close those that were not used since the last look at them.

        Args:
            most: look at no more than these, some milliseconds' work.
        """
        with self._lock:
            for _ in range(min(most, len(self._hand))):
                reference = self._hand.popleft()
                holder = reference()
                if holder is None or not holder.is_open:
                    continue
                if holder.was_used:
                    holder.was_used = False
                    self._hand.append(reference)
                else:
                    holder.close()

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
