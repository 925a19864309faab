"""The beginning of every log: where it lies, and whom it tells when the disk fails."""

from __future__ import annotations

from collections.abc import Callable

from ...common.topic_partition import TopicPartition
from ..errors import StorageError, is_disk_failure
from ..io.files import Files
from .log_keeper import STANDALONE, LogKeeper


class KeptLog:
    """What a log knows of itself before anything is in it.

    Args:
        files: the file system.
        directory: the partition's folder.
        topic_partition: whose log it is.
    """

    def __init__(self, files: Files, directory: str, topic_partition: TopicPartition) -> None:
        self._files = files
        self.keeper: LogKeeper = STANDALONE
        """Told of failures, rolls and deletions; whoever opened the log may take its place."""
        self.directory = directory
        self.topic_partition = topic_partition
        self.on_start_moved: Callable[[], None] | None = None
        """Called when less can be read of its beginning."""

    def flush_failed(self, error: OSError) -> None:
        """A flush could not be run to its end.

        Whatever the reason, even a full disk: what the operating system had not written
        yet may be gone from its memory too, and a second sync would succeed all the same.
        """
        self.keeper.disk_failed(self.directory, error)

    def _note_failure(self, error: OSError) -> None:
        """Tell the keeper of an error of the disk, unless it is full only."""
        if is_disk_failure(error):
            self.keeper.disk_failed(self.directory, error)

    def _storage_error(self, verb: str, error: OSError) -> StorageError:
        """What to raise for an error of the disk, of which the keeper is told."""
        self._note_failure(error)
        return StorageError(f"could not {verb} {self.topic_partition}: {error}")
