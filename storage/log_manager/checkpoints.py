"""Writing the checkpoint files of the log directories."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import count

from ...common.topic_partition import TopicPartition
from ..errors import is_disk_failure
from ..file_names import (
    ABORTED_TRANSACTIONS_FILE,
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
)
from ..log.log import Log
from .log_directories import LogDirectories
from .log_directory import LogDirectory

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]
Failed = Callable[[str, OSError], None]


class Checkpoints:
    """Writes the checkpoint files of directories that are online.

    Args:
        directories: all of the broker's.
        disk_failed: called with a path and why, where a disk fails; any thread may call it.
    """

    def __init__(self, directories: LogDirectories, disk_failed: Failed) -> None:
        self._directories = directories
        self._disk_failed = disk_failed
        self._serials = count()

    def prepare(
        self, name: str, high_watermarks: Mapping[TopicPartition, int]
    ) -> Callable[[], None] | None:
        """The writing of one file in each directory, as work for a thread: it waits for disks.

        Args:
            name: of the file.
            high_watermarks: by partition, for the file of high watermarks.

        Returns:
            None where nothing has changed since the last time. The work raises nothing: a
            disk that is full is tried again the next time, and one that fails is reported.
        """
        changed: list[tuple[LogDirectory, Offsets]] = []
        for directory in self._directories:
            if directory.is_online:
                offsets = checkpoint_of(name, directory.logs_in(name), high_watermarks)
                if offsets != directory.written.get(name):
                    changed.append((directory, offsets))
        if not changed:
            return None
        serial = next(self._serials)

        def write() -> None:
            for directory, offsets in changed:
                self._write(directory, name, offsets, serial)

        return write

    def write(self, directory: LogDirectory, name: str, offsets: Offsets) -> bool:
        """Write one file now; whether that succeeded."""
        return self._write(directory, name, offsets, next(self._serials))

    def _write(self, directory: LogDirectory, name: str, offsets: Offsets, serial: int) -> bool:
        try:
            directory.write_checkpoint(name, offsets, serial)
        except OSError as error:
            logger.warning("could not write %s in %s: %s", name, directory.path, error)
            if is_disk_failure(error):
                self._disk_failed(directory.path, error)
            return False
        return True

    def lower(self, directory: LogDirectory) -> None:
        """Write recovery points and log start offsets, because some of them went back.

        On a full disk the file is removed: a start assumes nothing then.
        """
        for name in (RECOVERY_POINTS_FILE, LOG_START_OFFSETS_FILE):
            offsets = checkpoint_of(name, directory.logs_in(name), {})
            if offsets == directory.written.get(name):
                continue
            serial = next(self._serials)
            try:
                directory.write_checkpoint(name, offsets, serial)
            except OSError as error:
                if is_disk_failure(error):
                    raise
                logger.warning("removing %s in %s: %s", name, directory.path, error)
                directory.remove_checkpoint(name, serial)

    def forget(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        high_watermarks: Mapping[TopicPartition, int],
    ) -> None:
        """Make sure that no file has an entry of a partition that is about to be made.

        It would be of an earlier topic of the name: after a crash the new log's batches would
        count as flushed, or as deleted.
        """
        for name, written in list(directory.written.items()):
            if topic_partition in written:
                logs = directory.logs_in(name)
                self.write(directory, name, checkpoint_of(name, logs, high_watermarks))


def checkpoint_of(
    name: str,
    logs: Mapping[TopicPartition, Log],
    high_watermarks: Mapping[TopicPartition, int],
) -> Offsets:
    """The entries of a checkpoint file for the logs in its directory.

    No recovery point lies within the active segment: recovery reads whole segments, and when the
    active one is closed its indexes are completed and not on the disk yet. A log start offset is
    written although the first segment begins there: a crash may bring back those before it. How
    many aborted transactions the indexes of a log name is written at a clean shutdown alone: an
    index of them has no file where it is empty, so one that is gone would not be missed.
    """
    if name == RECOVERY_POINTS_FILE:
        return {
            topic_partition: min(log.recovery_point, log.segments.active.base_offset)
            for topic_partition, log in logs.items()
        }
    if name == LOG_START_OFFSETS_FILE:
        return {
            topic_partition: log.log_start_offset
            for topic_partition, log in logs.items()
            if log.log_start_offset > 0
        }
    if name == ABORTED_TRANSACTIONS_FILE:
        return {
            topic_partition: log.segments.aborted_count()
            for topic_partition, log in logs.items()
            if log.segments.has_aborted_transactions
        }
    assert name == HIGH_WATERMARKS_FILE
    return {
        topic_partition: high_watermarks[topic_partition]
        for topic_partition in logs
        if topic_partition in high_watermarks
    }
