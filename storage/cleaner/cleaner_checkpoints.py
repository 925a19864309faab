"""Up to where each log is clean, in memory and in Kafka's `cleaner-offset-checkpoint`.

A checkpoint must never lie after batches that were appended after a truncation: their keys would
be missing when tombstones among them are removed. So it belongs to one `Log` object, and follows
each truncation at once.
"""

from __future__ import annotations

import logging
import os.path
from collections.abc import Callable, Collection, Mapping

from ...common.named_tuple import NamedTuple
from ...common.topic_partition import TopicPartition
from ..checkpoint.checkpoint_file import CheckpointError, read_offsets, write_offsets
from ..errors import is_disk_failure
from ..file_names import CLEANER_OFFSETS_FILE
from ..io.files import Files
from ..log.log import Log

logger = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """Where the dirty part of a log begins."""

    offset: int
    log: Log


class WriteResult(NamedTuple):
    """By log directory, what its file holds now, or why it could not be written."""

    written: dict[str, dict[TopicPartition, int]]
    failures: dict[str, OSError]


class CleanerCheckpoints:
    """The checkpoints of all log directories."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._read: dict[TopicPartition, int] = {}
        """From the files, of logs not seen yet."""
        self._known: dict[TopicPartition, Checkpoint] = {}
        self._written: dict[str, dict[TopicPartition, int]] = {}
        """What the file of each directory holds."""
        self._is_writing = False

    def use_directories(self, directories: Collection[str]) -> None:
        """Read the files of log directories not known yet, and leave alone all others.

        Args:
            directories: the paths of those that are online.
        """
        for directory in self._written.keys() - set(directories):
            del self._written[directory]
        for directory in directories:
            if directory in self._written:
                continue
            self._written[directory] = {}
            try:
                found = read_offsets(self._files, os.path.join(directory, CLEANER_OFFSETS_FILE))
            except (OSError, CheckpointError) as error:
                logger.warning(
                    "could not read %s in %s, all logs count as dirty: %s",
                    CLEANER_OFFSETS_FILE,
                    directory,
                    error,
                )
            else:
                self._written[directory] = found
                self._read |= found

    def first_dirty_offset(self, log: Log) -> int:
        """From where on a log was not cleaned yet (LogCleanerManager.cleanableOffsets).

        A checkpoint outside of the log, or of another log of that name, is ignored: then the
        whole log is dirty.
        """
        topic_partition = log.topic_partition
        known = self._known.get(topic_partition)
        if known is None or known.log is not log:
            offset = self._read.pop(topic_partition, log.log_start_offset)
            if offset > log.lowest_end_offset:
                logger.warning(
                    "%s was cleaned up to offset %d, but ends before: all of it counts as dirty",
                    topic_partition,
                    offset,
                )
                offset = log.log_start_offset
            log.on_cut = lambda end_offset: self._cut(log, end_offset)
            known = self._known[topic_partition] = Checkpoint(offset, log)
        if known.offset < log.log_start_offset:
            known = self._known[topic_partition] = Checkpoint(log.log_start_offset, log)
        return known.offset

    def cleaned(self, log: Log, offset: int) -> None:
        """A log is clean up to `offset`."""
        self._known[log.topic_partition] = Checkpoint(offset, log)

    def _cut(self, log: Log, end_offset: int) -> None:
        """A log was truncated: the checkpoint on the disk must follow before the next append."""
        known = self._known.get(log.topic_partition)
        if known is None or known.log is not log or known.offset <= end_offset:
            return
        self._known[log.topic_partition] = Checkpoint(end_offset, log)
        if not self._is_writing:  # else `prepare_write` is called again afterwards
            self.write_done(self._write(self._changed()))

    def keep_only(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Forget the checkpoints of logs that are not there any more."""
        for topic_partition, known in list(self._known.items()):
            if logs.get(topic_partition) is not known.log:
                del self._known[topic_partition]
        for topic_partition in self._read.keys() - logs.keys():
            del self._read[topic_partition]

    def prepare_write(self) -> Callable[[], WriteResult] | None:
        """Work for a thread that brings the files up to date; None if they are.

        Hand its result to `write_done`, and then call this again.
        """
        changed = self._changed()
        if not changed:
            return None
        self._is_writing = True
        return lambda: self._write(changed)

    def write_done(self, result: WriteResult) -> None:
        """What was written is not written again; what could not be is at the next change."""
        self._is_writing = False
        for directory in result.written.keys() & self._written.keys():
            self._written[directory] = result.written[directory]
        for directory, error in result.failures.items():
            logger.warning("could not write %s in %s: %s", CLEANER_OFFSETS_FILE, directory, error)
            if is_disk_failure(error):
                self._report_failure(directory, error)

    def _report_failure(self, directory: str, error: OSError) -> None:
        for known in self._known.values():
            if os.path.dirname(known.log.directory) == directory:
                known.log.owner.disk_failed(directory, error)
                return

    def _changed(self) -> dict[str, dict[TopicPartition, int]]:
        current: dict[str, dict[TopicPartition, int]] = {
            directory: {
                topic_partition: offset
                for topic_partition, offset in before.items()
                if topic_partition in self._read
            }
            for directory, before in self._written.items()
        }
        for topic_partition, known in self._known.items():
            offsets = current.get(os.path.dirname(known.log.directory))
            if offsets is not None:
                offsets[topic_partition] = known.offset
        return {
            directory: offsets
            for directory, offsets in current.items()
            if self._written[directory] != offsets
        }

    def _write(self, changed: Mapping[str, dict[TopicPartition, int]]) -> WriteResult:
        written: dict[str, dict[TopicPartition, int]] = {}
        failures: dict[str, OSError] = {}
        for directory, offsets in changed.items():
            try:
                write_offsets(self._files, os.path.join(directory, CLEANER_OFFSETS_FILE), offsets)
            except OSError as error:
                failures[directory] = error
            else:
                written[directory] = offsets
        return WriteResult(written, failures)
