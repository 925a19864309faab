"""The renames by which a future log replaces a log, in an order that a crash may interrupt."""

from __future__ import annotations

from contextlib import suppress

from ..io.files import Files


class FolderSwap:
    """Renames the log's folder as pending deletion, and then the future log's as the log's.

    Each rename is on the disk before the next: with both done and neither synced, a crash could
    leave the old log beside the new one.

    Args:
        source_path: the log directory of the log.
        current: its folder.
        deleted: the name that this gets.
        target_path: the log directory of the future log.
        future: its folder.
        final: the name that this gets.

    Attributes:
        active_path: the log directory that is being worked in, or was when it failed.
        undo_failure: why the log's folder could not get its name back after a failure.
    """

    def __init__(
        self,
        files: Files,
        source_path: str,
        current: str,
        deleted: str,
        target_path: str,
        future: str,
        final: str,
    ) -> None:
        self._files = files
        self._source_path = source_path
        self._current = current
        self.deleted = deleted
        self._target_path = target_path
        self._future = future
        self.final = final
        self.active_path = target_path
        self.undo_failure: OSError | None = None

    def run(self) -> None:
        """Rename both.

        Raises:
            OSError: a disk fails, and all names are what they were, as far as that disk lets
                them be.
        """
        files = self._files
        self.active_path = self._source_path
        try:
            files.rename(self._current, self.deleted)
            files.sync_directory(self._source_path)
        except OSError:
            self._undo_source()
            raise
        self.active_path = self._target_path
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
        try:
            if self._files.exists(self.deleted):
                self._files.rename(self.deleted, self._current)
                self._files.sync_directory(self._source_path)
        except OSError as error:
            self.undo_failure = error
