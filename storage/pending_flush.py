"""An fsync to be done elsewhere: it can take seconds, and the loop must not wait."""

from __future__ import annotations

from .files import Files, StorageFile


class PendingFlush:
    """Files to sync, decided on in the loop; `run` may be called in a thread.

    Args:
        files: the file system.
        segment_files: the files of batches that have grown since the last flush.
        paths: their index files and the leader epochs, written but not synced.
        directory: the partition's folder, whose names are synced too.
        offset: the log's end at the moment of the decision.
        generation: the log's; if it is another afterwards, the result is void.
    """

    __slots__ = ("_directory", "_files", "_paths", "_segment_files", "generation", "offset")

    def __init__(
        self,
        files: Files,
        segment_files: list[StorageFile],
        paths: list[str],
        directory: str,
        offset: int,
        generation: int,
    ) -> None:
        self._files = files
        self._segment_files = segment_files
        self._paths = paths
        self._directory = directory
        self.offset = offset
        self.generation = generation

    def run(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            OSError: the disk fails; what is on it is unknown.
        """
        for file in self._segment_files:
            file.sync()
        for path in self._paths:
            self._files.open(path).sync()
        self._files.sync_directory(self._directory)
