"""What a log asks of whoever keeps it: word of a broken disk, a flush, a late deletion.

A log that is opened alone, by a tool or a test, has nobody to ask: `STANDALONE` deletes
at once and has no other logs to protect.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ..io.files import Files

if TYPE_CHECKING:
    from .log_appender import LogAppender


class LogKeeper(Protocol):
    """The log manager, as its logs see it. Everything is called on the loop."""

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove files that already have names on their way out, after a while.

        Args:
            files: the file system they lie in.
            paths: files of one log directory.
            delay_ms: `file.delete.delay.ms`.
        """

    def disk_failed(self, path: str, error: OSError) -> None:
        """Take note of an error of the disk that is no lack of room.

        Args:
            path: of what could not be read or written.
            error: what the operating system said.
        """

    def rolled(self, log: LogAppender) -> None:
        """A segment was closed: it is to be flushed, off the loop."""

    def promises_taken_back(self, log: LogAppender) -> None:
        """Recovery point or start of a log have gone back: the checkpoints are written at once.

        Raises:
            OSError: they cannot be.
        """

    def jitter(self) -> float:
        """By chance, how much of `segment.jitter.ms` a new segment rolls early: 0 to 1."""


class StandaloneKeeper:
    """For a log that belongs to no log manager."""

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove them now; the next start removes what cannot be removed."""
        for path in paths:
            with suppress(OSError):
                files.remove(path)

    def disk_failed(self, path: str, error: OSError) -> None:
        """Nobody else is concerned: the caller gets the error as well."""

    def rolled(self, log: LogAppender) -> None:
        """It is flushed when the log is."""

    def promises_taken_back(self, log: LogAppender) -> None:
        """Nobody has written checkpoints."""

    def jitter(self) -> float:
        """None: nothing else rolls at the same time."""
        return 0.0


STANDALONE: LogKeeper = StandaloneKeeper()
"""The one instance; it holds no state."""
