"""The same work on many things, by a few threads: loading logs, and closing them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

ItemT = TypeVar("ItemT")


class Workers:
    """Threads that each take the next item until none is left, or until `stop`.

    Args:
        name: of the threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._failure: BaseException | None = None
        self.done = 0
        """How many items have been worked on."""

    def start(self, items: Iterable[ItemT], work: Callable[[ItemT], None], threads: int) -> None:
        """Begin to work on items; what `work` raises stops all and is raised by `wait`.

        Args:
            items: of any number.
            work: called in a thread.
            threads: how many at the same time for these items.
        """
        queue = iter(items)

        def take() -> None:
            while not self._stopped:
                with self._lock:
                    try:
                        item = next(queue)
                    except StopIteration:
                        return
                try:
                    work(item)
                except BaseException as failure:
                    self._failure = failure
                    self._stopped = True
                    return
                with self._lock:
                    self.done += 1

        for _ in range(threads):
            thread = threading.Thread(target=take, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called, or an item failed, before all items were done."""
        return self._stopped

    def stop(self) -> None:
        """Take no more items; those in progress are finished."""
        self._stopped = True

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the threads; whether all are at their end.

        Raises:
            BaseException: what the work raised.
        """
        for thread in self._threads:
            thread.join(timeout_seconds)
            if thread.is_alive():
                return False
        if self._failure is not None:
            raise self._failure
        return True


def for_all(items: Sequence[ItemT], work: Callable[[ItemT], None], threads: int, name: str) -> None:
    """Work on all items, and wait for the end.

    Raises:
        BaseException: what the work raised; not all items may have been worked on then.
    """
    if min(len(items), threads) <= 1:
        for item in items:
            work(item)
        return
    workers = Workers(name)
    workers.start(items, work, min(threads, len(items)))
    workers.wait()
