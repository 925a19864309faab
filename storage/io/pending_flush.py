"""An fsync to be done elsewhere: it can take seconds, and the loop must not wait."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.named_tuple import NamedTuple
from .files import Files, StorageFile


class PendingFlush(NamedTuple):
    """Files to sync, decided on in the loop; `run` may be called in a thread."""

    files: Files
    segment_files: Sequence[StorageFile]
    """The files of batches that have grown since the last flush."""
    paths: Sequence[str]
    """Their index files and the leader epochs, written but not synced."""
    directories: Sequence[str]
    """Those with new names in them, the innermost first."""
    offset: int
    """What is synced then ends here."""
    generation: int
    """The log's; if it is another afterwards, the result is void."""
    indexed_to: int
    """The indexes are synced only of segments that end here."""

    def run(self) -> None:
        """Wait until everything is on the disk.

        A file that is gone by now was deleted with its segment, which is no failure.

        Raises:
            OSError: the disk fails; what is on it is unknown.
        """
        for file in self.segment_files:
            file.sync()
        for path in self.paths:
            try:
                file = self.files.open(path)
            except FileNotFoundError:
                continue
            file.sync()
        for directory in self.directories:
            try:
                self.files.sync_directory(directory)
            except FileNotFoundError:
                return  # the whole log was deleted meanwhile
