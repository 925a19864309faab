"""Copies of logs on their way to another log directory (KIP-113; LogManager's futureLogs).

A copy lies in a folder of its own, `orders-0.<unique>-future`, until it has all that the log
has. Then it takes the log's place, and the log's folder is removed. At every moment, a crash
included, one folder holds all that was flushed:

- Before, the log's does. A copy found at the start goes on from where it was.
- The copy is on the disk as far as the log is when its turn comes, and the checkpoints beside
  it say so. Then the log's folder gets its name on the way out, and after that the copy gets
  the log's. A start that finds a copy and no log has been interrupted in between, and takes
  the copy. (Kafka gives the copy its name first, and refuses to start on what a crash leaves.)
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...runtime.rng import random_uuid
from ..checkpoint.checkpoint_file import CheckpointError
from ..checkpoint.log_checkpoints import Checkpoints
from ..errors import LogDirectoryError, StorageError, is_disk_failure
from ..io.files import Files
from ..log.log import Log
from ..log.log_appender import LogAppender
from ..log.log_config import LogConfig
from ..recovery.log_loader import load_log
from .future_log_folders import FolderSwap, relocate
from .log_directory import (
    FOLDER_NAME_MAX,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
    LogDirectory,
    future_folder_name,
)

if TYPE_CHECKING:
    from .log_manager import LogManager

logger = logging.getLogger(__name__)

PREFERENCES_MAX = 100_000
"""So many partitions that are not here yet may have a directory chosen for them; the oldest
choices go first. Kafka remembers any number."""

UNIQUE_LENGTH = 32


class FutureLogs:
    """The copies of a log manager; to them it is the `LogKeeper`.

    Args:
        manager: whose logs they are to replace.
        files: the file system.
        checkpoints: of the log directories.
        chance: tells folders apart.

    Attributes:
        logs: by partition.
    """

    def __init__(
        self, manager: LogManager, files: Files, checkpoints: Checkpoints, chance: random.Random
    ) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self._manager = manager
        self._files = files
        self._checkpoints = checkpoints
        self._chance = chance
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}

    # --- which directory ---------------------------------------------------------------

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Where a partition's log is moving to; None if it is not."""
        return self._directory_of.get(topic_partition)

    def prefer(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        """Have the log of a partition that is not here yet made in that directory."""
        self._preferred.pop(topic_partition, None)
        while len(self._preferred) >= PREFERENCES_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic_partition] = directory

    def candidates(self, topic_partition: TopicPartition) -> list[LogDirectory]:
        """Where a partition's log may be made, the best first: as wished, or with the fewest."""
        online = self._manager.directories.online
        preferred = self._preferred.get(topic_partition)
        if preferred in online:
            return [preferred]
        return sorted(online, key=lambda each: len(each.logs))

    def satisfied(self, topic_partition: TopicPartition) -> None:
        """A log was made; the next one of that name may be made anywhere."""
        self._preferred.pop(topic_partition, None)

    # --- copies come and go ------------------------------------------------------------

    def create(
        self,
        topic_partition: TopicPartition,
        directory: LogDirectory,
        topic_id: bytes | None,
        config: LogConfig,
    ) -> Log:
        """An empty copy of a partition's log in another directory.

        Raises:
            StorageError: the disk fails, or some directory is offline: there may be a copy in
                it already.
        """
        manager = self._manager
        if manager.directories.has_offline:
            raise StorageError(
                f"a copy of {topic_partition} may lie in a directory that is offline"
            )
        folder = directory.future_folder_of(topic_partition, self._unique())
        try:
            self._checkpoints.forget(directory, topic_partition, manager.high_watermarks)
            log = load_log(
                folder,
                topic_partition,
                config,
                files=self._files,
                now_ms=manager.clock.now_ms(),
                topic_id=topic_id,
            )
        except OSError as error:
            if is_disk_failure(error):
                manager.disk_failed(directory.path, error)
            raise StorageError(f"could not make {folder}: {error}") from error
        self._take_up(topic_partition, directory, log)
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a copy away, if there is one; its folder is removed after a while.

        Raises:
            StorageError: the disk fails.
        """
        log = self.logs.get(topic_partition)
        if log is None:
            return
        path = self._directory_of[topic_partition].deleted_folder_of(
            topic_partition, self._unique()
        )
        log.move_folder(path)
        self._drop(topic_partition)
        self._remove_later(path, log.config.file_delete_delay_ms)

    def load(self, found: Sequence[tuple[LogDirectory, TopicPartition, str]]) -> None:
        """Open the copies that a start has found.

        Of several for one partition the longest is kept. One that makes no sense is no loss as
        long as there is the log, and is removed; else it is left to whoever can read it.
        """
        for directory, topic_partition, folder in found:
            if not directory.is_online:
                continue
            log = self._load(directory, topic_partition, folder)
            if log is None:
                continue
            if topic_partition in directory.logs:
                self._discard(log, "the log itself lies beside it")
                continue
            other = self.logs.get(topic_partition)
            if other is not None:
                if other.log_end_offset >= log.log_end_offset:
                    self._discard(log, f"there is one in {other.directory}")
                    continue
                self._drop(topic_partition)
                self._discard(other, f"there is a longer one in {folder}")
            self._take_up(topic_partition, directory, log)

    def _load(
        self, directory: LogDirectory, topic_partition: TopicPartition, folder: str
    ) -> Log | None:
        manager = self._manager
        try:
            log = load_log(
                folder,
                topic_partition,
                manager.default_config,
                files=self._files,
                now_ms=manager.clock.now_ms(),
                clean_shutdown=directory.was_clean,
                recovery_point=directory.offset(RECOVERY_POINTS_FILE, topic_partition),
                log_start_offset=directory.offset(LOG_START_OFFSETS_FILE, topic_partition),
                gaps_end=0,  # cut where compaction left a gap, it is copied from there
            )
        except OSError as error:
            logger.error("the copy in %s cannot be read: %s", folder, error)
            manager.disk_failed(directory.path, error)
            return None
        except (CheckpointError, KafkaError, LogDirectoryError) as error:
            has_log = topic_partition in manager.logs
            verdict = "removed" if has_log else "left alone"
            logger.error("the copy in %s is %s: %s", folder, verdict, error)
            if has_log:
                self._remove_later(folder, 0)
            return None
        log.close_files()
        return log

    def _discard(self, log: Log, why: str) -> None:
        logger.warning("the copy in %s is removed: %s", log.directory, why)
        log.close_files()
        self._remove_later(log.directory, 0)

    def directory_failed(self, directory: LogDirectory) -> None:
        """A directory is offline: forget the copies in it."""
        for topic_partition in list(directory.futures):
            self.logs[topic_partition].close_files()
            self._drop(topic_partition)

    # --- taking the log's place --------------------------------------------------------

    def take_over(self, topic_partition: TopicPartition, topic_id: bytes | None) -> Log | None:
        """The copy of a partition that has no log, as its log from now on.

        So it is after a crash between the two renames of `replace_current`. A copy of another
        topic of that name is removed.

        Raises:
            StorageError: the disk fails.
        """
        log = self.logs.get(topic_partition)
        if log is None or self._manager.directories.has_offline:
            return None
        if topic_id is not None and log.topic_id != topic_id:
            self.delete(topic_partition)
            return None
        directory = self._directory_of[topic_partition]
        path = directory.folder_of(topic_partition)
        try:
            self._files.rename(log.directory, path)
            relocate(log, path)
            self._files.sync_directory(directory.path)
        except OSError as error:
            if is_disk_failure(error):
                self._manager.disk_failed(directory.path, error)
            raise StorageError(f"could not rename {log.directory}: {error}") from error
        logger.warning(
            "%s has a copy in %s, which was to replace its log, and no log: the copy, up to "
            "offset %d, is its log now",
            topic_partition,
            directory.path,
            log.log_end_offset,
        )
        self._drop(topic_partition)
        self._manager.use_log(directory, topic_partition, log)
        return log

    def replace_current(self, topic_partition: TopicPartition) -> Log:
        """Put a copy that has everything in the place of the log; returns the copy.

        Slices of the old log stay readable. To be called when both end at the same offset,
        nothing is staged on either, and the copy is flushed as far as the log is.

        Raises:
            StorageError: the disk fails; the log is what it was.
        """
        manager = self._manager
        future, current = self.logs[topic_partition], manager.logs[topic_partition]
        target = self._directory_of[topic_partition]
        source = manager.directory_of(topic_partition)
        assert source is not None
        assert future.log_end_offset == current.staged_end_offset == current.log_end_offset
        assert future.recovery_point >= current.recovery_point
        swap = FolderSwap(
            self._files,
            source.path,
            current.directory,
            source.deleted_folder_of(topic_partition, self._unique()),
            target.path,
            future.directory,
            target.folder_of(topic_partition),
        )
        try:
            future.advance_log_start_offset(current.log_start_offset)
            future.epochs.take_over(current.epochs)
            future.epochs.flush()
            self._checkpoints.take_back(target)  # a start goes by them, and by no older ones
            swap.run()
        except OSError as error:
            if is_disk_failure(error):
                manager.disk_failed(swap.at_work_in, error)
            if swap.trouble is not None:
                manager.directories.note_failure(source.path, swap.trouble)
            raise StorageError(f"could not replace {current.directory}: {error}") from error
        relocate(future, swap.final)
        self._drop(topic_partition)
        manager.use_log(target, topic_partition, future)
        current.close_files()
        if current.on_cut is not None:
            current.on_cut(0)
        self._remove_later(swap.doomed, current.config.file_delete_delay_ms)
        return future

    # --- what the copies tell (`LogKeeper`) --------------------------------------------

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove files soon: nobody reads a copy, and its folder gets another name in time."""
        self._manager.deletions.add_files(files, paths, self._manager.clock.monotonic_ms())

    def disk_failed(self, path: str, error: OSError) -> None:
        """Take note that a disk fails, unless the copy was removed meanwhile."""
        if isinstance(error, FileNotFoundError) and not any(
            log.directory == path for log in self.logs.values()
        ):
            return
        self._manager.directories.note_failure(path, error)

    def rolled(self, log: LogAppender) -> None:
        """Whoever copies flushes, too."""

    def promises_taken_back(self, log: LogAppender) -> None:
        """Recovery point or start of a copy have gone back, before it is cut."""
        self._checkpoints.take_back(self._directory_of[log.topic_partition])

    def jitter(self) -> float:
        """A random number from 0 to 1."""
        return self._chance.random()

    # --- inside ------------------------------------------------------------------------

    def _take_up(self, topic_partition: TopicPartition, directory: LogDirectory, log: Log) -> None:
        log.keeper = self
        directory.futures[topic_partition] = log
        self.logs[topic_partition] = log
        self._directory_of[topic_partition] = directory

    def _drop(self, topic_partition: TopicPartition) -> None:
        del self.logs[topic_partition]
        del self._directory_of.pop(topic_partition).futures[topic_partition]

    def _remove_later(self, folder: str, delay_ms: int) -> None:
        due_ms = self._manager.clock.monotonic_ms() + delay_ms
        self._manager.deletions.add_folder(self._files, folder, due_ms)

    def _unique(self) -> str:
        return random_uuid(self._chance).hex()


def can_move(topic_partition: TopicPartition) -> bool:
    """Whether the name of a copy's folder would not be too long (KAFKA-4893)."""
    return len(future_folder_name(topic_partition, "0" * UNIQUE_LENGTH)) <= FOLDER_NAME_MAX
