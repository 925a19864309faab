"""What a log needs of its owner: a flush of closed segments, a deferred deletion, failed disks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from ...common.topic_partition import TopicPartition
from ..io.files import Files


class LogOwner(Protocol):
    """The log manager, as its logs see it. Everything is called on the loop."""

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove files that are marked as deleted already, after a delay.

        Args:
            files: the file system they lie in.
            paths: files of one log directory.
            delay_ms: `file.delete.delay.ms`.
        """

    def disk_failed(self, path: str, error: OSError) -> None:
        """The disk failed, and not because it is full.

        Args:
            path: of what could not be read or written.
            error: what the operating system said.
        """

    def rolled(self, topic_partition: TopicPartition) -> None:
        """A segment of the log was closed: it has to be flushed, off the loop."""

    def recovery_point_lowered(self, topic_partition: TopicPartition) -> None:
        """Recovery point or log start offset went back: write the checkpoints at once.

        Raises:
            OSError: they cannot be written.
        """

    def jitter(self) -> float:
        """A random share of `segment.jitter.ms`, 0 to 1, by which a new segment rolls early."""


class NullLogOwner:
    """For a log without a log manager, as tools and tests open it."""

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove them now; the next start removes what cannot be removed."""
        for path in paths:
            with suppress(OSError):
                files.remove(path)

    def disk_failed(self, path: str, error: OSError) -> None:
        """Nothing: the caller gets the error as well."""

    def rolled(self, topic_partition: TopicPartition) -> None:
        """Nothing: closed segments are flushed with the log."""

    def recovery_point_lowered(self, topic_partition: TopicPartition) -> None:
        """Nothing: there are no checkpoints."""

    def jitter(self) -> float:
        """None: no other log rolls at the same time."""
        return 0.0


NULL_LOG_OWNER: LogOwner = NullLogOwner()
"""The one instance; it holds no state."""
