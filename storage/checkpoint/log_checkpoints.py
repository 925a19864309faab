"""What the checkpoint files of the log directories are to say, and their writing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import count

from ...common.topic_partition import TopicPartition
from ..errors import is_disk_failure
from ..log.log import Log
from ..log_manager.log_directories import LogDirectories
from ..log_manager.log_directory import (
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
    LogDirectory,
)

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]
Failed = Callable[[str, OSError], None]


class Checkpoints:
    """Writes the checkpoint files of directories that are online.

    Args:
        directories: all of the broker's.
        disk_failed: told a path and why, where a disk fails; may be called by a thread.
    """

    def __init__(self, directories: LogDirectories, disk_failed: Failed) -> None:
        self._directories = directories
        self._disk_failed = disk_failed
        self._serials = count()

    def prepare(
        self, name: str, high_watermarks: Mapping[TopicPartition, int]
    ) -> Callable[[], None] | None:
        """Writing one of the files in each directory, as work for a thread: it waits for disks.

        Args:
            name: of the file.
            high_watermarks: by partition, for the file of high watermarks.

        Returns:
            None where nothing has changed since the last time. The work raises nothing: a
            disk that is full is tried again the next time, and one that fails is told of.
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

    def take_back(self, directory: LogDirectory) -> None:
        """Write where logs start and are flushed to, because some of it has gone back.

        On a disk without room for it the file is removed: then it promises nothing.

        Raises:
            OSError: the disk fails.
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
                logger.warning("%s in %s is removed: %s", name, directory.path, error)
                directory.remove_checkpoint(name, serial)

    def forget(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        high_watermarks: Mapping[TopicPartition, int],
    ) -> None:
        """Make sure that no file speaks of a partition that is about to be made.

        It would be of an earlier topic of the name, and a crash would have the new log's
        batches taken for flushed, or for deleted.
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
    """What a checkpoint file is to say of the logs in its directory.

    A recovery reads whole segments, and what it says of the active one would be wrong as
    soon as that is closed: its indexes are completed then, and not on the disk yet. A start
    is noted although the first segment begins there: a crash may bring back those before it.
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
    assert name == HIGH_WATERMARKS_FILE
    return {
        topic_partition: high_watermarks[topic_partition]
        for topic_partition in logs
        if topic_partition in high_watermarks
    }
