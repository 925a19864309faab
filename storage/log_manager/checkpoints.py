"""Writing the checkpoint files of the log directories."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import count

from ...common.topic_partition import TopicPartition
from ...runtime.steps import Steps, run_at_once
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
HighWatermarkOf = Callable[[TopicPartition], int | None]


def _no_high_watermark(_: TopicPartition) -> None:
    """For the files of other offsets."""


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
        self._unfinished: list[Offsets] = []
        """Entries that are being collected."""

    def prepare(
        self, name: str, high_watermark_of: HighWatermarkOf = _no_high_watermark
    ) -> Steps[Callable[[], None] | None]:
        """The writing of one file in each directory, as work for a thread: it waits for disks.

        Args:
            name: of the file.
            high_watermark_of: for the file of high watermarks.

        Returns:
            None where nothing has changed since the last time. The work raises nothing: a
            disk that is full is tried again the next time, and one that fails is reported.
        """
        changed: list[tuple[LogDirectory, Offsets]] = []
        serial = next(self._serials)  # what `lower` writes meanwhile is newer
        for directory in self._directories:
            if directory.is_online:
                offsets = directory.kept_entries(name)
                logs, written = directory.logs_in(name), directory.written.get(name)
                self._unfinished.append(offsets)
                is_changed = yield from collect(offsets, name, logs, high_watermark_of, written)
                self._unfinished = [each for each in self._unfinished if each is not offsets]
                if is_changed:
                    changed.append((directory, offsets))
        if not changed:
            return None

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
            offsets = checkpoint_of(name, directory)
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
        high_watermark_of: HighWatermarkOf,
    ) -> None:
        """Make sure that no file has an entry of a partition that is about to be made.

        It would be of an earlier topic of the name: after a crash the new log's batches would
        count as flushed, or as deleted.
        """
        for offsets in self._unfinished:
            offsets.pop(topic_partition, None)
        for name, written in list(directory.written.items()):
            if topic_partition in written:
                self.write(directory, name, checkpoint_of(name, directory, high_watermark_of))


def checkpoint_of(
    name: str,
    directory: LogDirectory,
    high_watermark_of: HighWatermarkOf = _no_high_watermark,
) -> Offsets:
    """The entries of a checkpoint file for the logs in its directory."""
    offsets = directory.kept_entries(name)
    run_at_once(collect(offsets, name, directory.logs_in(name), high_watermark_of))
    return offsets


def entry_of(name: str, log: Log) -> int:
    """What a checkpoint file says of a log, other than that of high watermarks."""
    return _entries(name, _no_high_watermark)(log.topic_partition, log) or 0


def collect(
    offsets: Offsets,
    name: str,
    logs: Mapping[TopicPartition, Log],
    high_watermark_of: HighWatermarkOf,
    written: Mapping[TopicPartition, int] | None = None,
) -> Steps[bool]:
    """Add the entries of a checkpoint file to `offsets`, log by log.

    Returns:
        Whether they are others than those that were written last.
    """
    entry_for = _entries(name, high_watermark_of)
    before: Mapping[TopicPartition, int] = {} if written is None else written
    is_changed = False
    for topic_partition, log in list(logs.items()):
        yield
        entry = entry_for(topic_partition, log)
        if entry is not None and logs.get(topic_partition) is log:  # not deleted meanwhile
            offsets[topic_partition] = entry
            is_changed = is_changed or before.get(topic_partition) != entry
    return is_changed or written is None or len(before) != len(offsets)


def _entries(
    name: str, high_watermark_of: HighWatermarkOf
) -> Callable[[TopicPartition, Log], int | None]:
    """What a checkpoint file says of a log; None: nothing.

    No recovery point lies within the active segment: recovery reads whole segments, and when the
    active one is closed its indexes are completed and not on the disk yet. A log start offset is
    written although the first segment begins there: a crash may bring back those before it. How
    many aborted transactions the indexes of a log name is written at a clean shutdown alone: an
    index of them has no file where it is empty, so one that is gone would not be missed.
    """
    if name == RECOVERY_POINTS_FILE:
        return lambda _, log: min(log.recovery_point, log.segments.active.base_offset)
    if name == LOG_START_OFFSETS_FILE:
        return lambda _, log: log.log_start_offset or None
    if name == ABORTED_TRANSACTIONS_FILE:
        return lambda _, log: (
            log.segments.aborted_count() if log.segments.has_aborted_transactions else None
        )
    assert name == HIGH_WATERMARKS_FILE
    return lambda topic_partition, _: high_watermark_of(topic_partition)
