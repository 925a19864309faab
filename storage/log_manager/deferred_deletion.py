"""Files that are to be removed after `file.delete.delay.ms`, in a thread.

They are renamed at once (`.deleted`, `-delete`), so nothing finds them any more, and a start
removes those that a crash or a stop left. The delay is for readers that still have a path.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from ...common.named_tuple import NamedTuple
from ..io.files import Files


class PendingDeletion(NamedTuple):
    """One file or folder, and when it is removed."""

    due_ms: int
    order: int
    files: Files
    path: str
    is_folder: bool


class DeferredDeletion:
    """What is pending deletion; `take_due` returns the work for a thread.

    Attributes:
        on_earlier: called with the time of the earliest deletion, in monotonic milliseconds,
            when that becomes earlier.
    """

    def __init__(self) -> None:
        self.on_earlier: Callable[[int], None] | None = None
        self._heap: list[PendingDeletion] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_due_ms(self) -> int | None:
        """When the next is due, in monotonic milliseconds; None if there is none."""
        return self._heap[0].due_ms if self._heap else None

    def add_files(self, files: Files, paths: Sequence[str], due_ms: int) -> None:
        """Remove files at a time in monotonic milliseconds."""
        self._add(files, paths, due_ms, is_folder=False)

    def add_folder(self, files: Files, path: str, due_ms: int) -> None:
        """Remove a folder and all in it at a time in monotonic milliseconds."""
        self._add(files, (path,), due_ms, is_folder=True)

    def _add(self, files: Files, paths: Sequence[str], due_ms: int, *, is_folder: bool) -> None:
        before = self.next_due_ms
        for path in paths:
            entry = PendingDeletion(due_ms, next(self._order), files, path, is_folder)
            heapq.heappush(self._heap, entry)
        if paths and self.on_earlier is not None and (before is None or due_ms < before):
            self.on_earlier(due_ms)

    def put_back(self, entries: Sequence[PendingDeletion]) -> None:
        """Keep what was taken out and could not be tried."""
        for entry in entries:
            heapq.heappush(self._heap, entry)

    def take_due(self, now_ms: int) -> list[PendingDeletion]:
        """Take out what is due; hand it to `delete_due`, in a thread if need be.

        Args:
            now_ms: monotonic time.
        """
        due: list[PendingDeletion] = []
        while self._heap and self._heap[0].due_ms <= now_ms:
            due.append(heapq.heappop(self._heap))
        return due


def delete_due(due: Sequence[PendingDeletion]) -> list[tuple[str, OSError]]:
    """Remove files and folders; what is gone already is no error.

    Returns:
        The paths that could not be removed, and why.
    """
    failures = []
    for entry in due:
        try:
            if entry.is_folder:
                entry.files.remove_tree(entry.path)
            else:
                entry.files.remove(entry.path)
        except OSError as error:
            failures.append((entry.path, error))
    return failures
