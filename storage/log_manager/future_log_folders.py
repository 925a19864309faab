"""The names of two folders when a copy takes a log's place, in an order that a crash may end."""

from __future__ import annotations

import os.path
from contextlib import suppress

from ..index.transaction_index import SUFFIX as TRANSACTION_INDEX_SUFFIX
from ..io.files import Files
from ..log.log import Log
from ..segment.log_segment import LogSegment, segment_path


class FolderSwap:
    """Names the log's folder as one on its way out, and then the copy's as the log's.

    Each is on the disk before the next: with both names changed and neither synced, a crash
    could leave the old log beside the new one.

    Args:
        files: the file system.
        source_path: the log directory of the log.
        current: its folder.
        doomed: the name that this gets.
        target_path: the log directory of the copy.
        future: its folder.
        final: the name that this gets.

    Attributes:
        at_work_in: the log directory that it works in, or worked in when it failed.
        trouble: why the log's folder could not get its name back after that; None: it has it.
    """

    def __init__(
        self,
        files: Files,
        source_path: str,
        current: str,
        doomed: str,
        target_path: str,
        future: str,
        final: str,
    ) -> None:
        self._files = files
        self._source_path = source_path
        self._current = current
        self.doomed = doomed
        self._target_path = target_path
        self._future = future
        self.final = final
        self.at_work_in = target_path
        self.trouble: OSError | None = None

    def run(self) -> None:
        """Do it.

        Raises:
            OSError: a disk fails, and all names are what they were, as far as that disk lets
                them be.
        """
        files = self._files
        self.at_work_in = self._source_path
        try:
            files.rename(self._current, self.doomed)
            files.sync_directory(self._source_path)
        except OSError:
            self._undo_source()
            raise
        self.at_work_in = self._target_path
        try:
            files.rename(self._future, self.final)
            files.sync_directory(self._target_path)
        except OSError:
            with suppress(OSError):
                files.rename(self.final, self._future)
                files.sync_directory(self._target_path)
            self._undo_source()
            raise

    def _undo_source(self) -> None:
        """Give the log its name again."""
        try:
            if self._files.exists(self.doomed):
                self._files.rename(self.doomed, self._current)
                self._files.sync_directory(self._source_path)
        except OSError as error:
            self.trouble = error


def relocate(log: Log, path: str) -> None:
    """Have a log know that its folder has another name; its open files stay what they are.

    A flush that is under way counts for nothing: it may not have found the side files.

    Args:
        log: any log.
        path: its folder, by now.
    """
    log.directory = path
    log.epochs.path = os.path.join(path, os.path.basename(log.epochs.path))
    for segment in log.segments:
        _relocate_segment(segment, path)
    log.generation += 1


def _relocate_segment(segment: LogSegment, path: str) -> None:
    had_transactions = segment.has_transaction_index
    segment.directory = path
    base_offset = segment.base_offset
    segment.offset_index.path = segment_path(path, base_offset, ".index")
    segment.time_index.path = segment_path(path, base_offset, ".timeindex")
    if had_transactions:
        segment.transaction_index.path = segment_path(path, base_offset, TRANSACTION_INDEX_SUFFIX)
