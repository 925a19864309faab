"""An fsync to be done elsewhere: it can take seconds, and the loop must not wait."""

from __future__ import annotations

from collections.abc import Sequence

from .files import Files, StorageFile


class PendingFlush:
    """Files to sync, decided on in the loop; `run` may be called in a thread.

    Args:
        segment_files: the files of batches that have grown since the last flush.
        paths: their index files and the leader epochs, written but not synced.
        directories: those with new names in them, the innermost first.
        offset: what is synced then ends here.
        generation: the log's; if it is another afterwards, the result is void.
        indexed_to: the indexes are synced only of segments that end here.
    """

    __slots__ = (
        "_directories",
        "_files",
        "_paths",
        "_segment_files",
        "generation",
        "indexed_to",
        "offset",
    )

    def __init__(
        self,
        files: Files,
        segment_files: Sequence[StorageFile],
        paths: Sequence[str],
        directories: Sequence[str],
        offset: int,
        generation: int,
        indexed_to: int,
    ) -> None:
        self._files = files
        self._segment_files = segment_files
        self._paths = paths
        self._directories = directories
        self.offset = offset
        self.generation = generation
        self.indexed_to = indexed_to

    def run(self) -> None:
        """Wait until everything is on the disk.

        A file that is gone by now was deleted with its segment, which is no failure.

        Raises:
            OSError: the disk fails; what is on it is unknown.
        """
        for file in self._segment_files:
            file.sync()
        for path in self._paths:
            try:
                file = self._files.open(path)
            except FileNotFoundError:
                continue
            file.sync()
        for directory in self._directories:
            try:
                self._files.sync_directory(directory)
            except FileNotFoundError:
                return  # the whole log was deleted meanwhile
