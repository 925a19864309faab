"""How much long work is begun at a time: what takes memory while it is under way has bounded room.

Of all long work one step is done at a time (`long_work.py`), so to have a hundred pieces of it half
done gains nothing, and takes a hundred times the memory. Who finds no room waits. Of those that
wait the first goes on and the smallest by turns: a small one waits for two others, not for all.
One that exceeds all the room there is goes on alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from . import waiting

WorkT = TypeVar("WorkT", bound=Hashable)


class WorkRoom(Generic[WorkT]):
    """The room of one kind of work.

    Args:
        bytes_max: how much memory there is.
        is_wanted: whether some work that waits is still to be done.

    Attributes:
        used_bytes: what the work takes that is under way.
    """

    def __init__(self, bytes_max: int, is_wanted: Callable[[WorkT], bool]) -> None:
        self.used_bytes = 0
        self._bytes_max = bytes_max
        self._is_wanted = is_wanted
        self._inside: dict[WorkT, int] = {}
        self._waiting: dict[WorkT, tuple[int, waiting.Event]] = {}
        self._smallest_next = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def enter(self, work: WorkT, size: int) -> bool:
        """Wait until there is room for some work, of so many bytes.

        Returns:
            whether there is, until it leaves; False: it is not wanted any more.
        """
        if self._waiting or not self._has_room(size):
            called = waiting.new_event()
            self._waiting[work] = size, called
            try:
                await called.wait()
            except BaseException:  # cancelled
                self._waiting.pop(work, None)
                self.leave(work)
                raise
            return work in self._inside
        self._let_in(work, size)
        return True

    def leave(self, work: WorkT) -> None:
        """The work is done, or broken off; nothing happens if it has left."""
        self.used_bytes -= self._inside.pop(work, 0)
        for each in [each for each in self._waiting if not self._is_wanted(each)]:
            self._waiting.pop(each)[1].set()
        while self._waiting:
            chosen = self._chosen()
            size, called = self._waiting[chosen]
            if not self._has_room(size):
                return
            del self._waiting[chosen]
            self._smallest_next = not self._smallest_next
            self._let_in(chosen, size)
            called.set()

    def _chosen(self) -> WorkT:
        if self._smallest_next:
            return min(self._waiting, key=lambda each: self._waiting[each][0])
        return next(iter(self._waiting))

    def _has_room(self, size: int) -> bool:
        return not self._inside or self.used_bytes + size <= self._bytes_max

    def _let_in(self, work: WorkT, size: int) -> None:
        self._inside[work] = size
        self.used_bytes += size
