"""All logs of a broker, and the directories they lie in (Kafka's LogManager).

It opens them at the start, makes and deletes them, and takes a directory offline whose disk
fails. It has no timer of its own: the broker calls it when the time has come.
"""

from __future__ import annotations

import errno
import logging
import os.path
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ...runtime.rng import random_uuid
from ..checkpoint.log_checkpoints import Checkpoints, checkpoint_of
from ..errors import StorageError, is_disk_failure
from ..io.files import REAL_FILES, Files
from ..io.parallel import for_all
from ..log.log import Log
from ..log.log_appender import LogAppender
from ..log.log_config import LogConfig
from ..recovery.log_loader import load_log
from ..recovery.log_loading import LoadProgress, LogLoading
from .deferred_deletion import DeferredDeletion
from .future_logs import FutureLogs
from .log_directories import LogDirectories
from .log_directory import (
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    NO_BROKER_EPOCH,
    RECOVERY_POINTS_FILE,
    LogDirectory,
)
from .log_upkeep import HighWatermarkOf, delete_old_segments

logger = logging.getLogger(__name__)

DEFAULT_RECOVERY_THREADS = 2
"""Kafka's num.recovery.threads.per.data.dir."""

CLOSING_THREADS = 16
"""For each directory. They wait for the disk, which syncs many files at once as fast as a few."""

GONE = (errno.ENOENT, errno.ENOTDIR)


class FailedDirectory(NamedTuple):
    """A directory that has just gone offline, and what went with it."""

    path: str
    why: str
    partitions: list[TopicPartition]


class LogManager:
    """Locks the log directories when it is made; `load_logs` opens what is in them.

    Args:
        log_dirs: paths, at least one; each is made if need be.
        clock: the time.
        default_config: of logs whose topic has no settings of its own.
        files: the file system.
        chance: spreads the rolling of segments, and names what is deleted.
        recovery_threads: `num.recovery.threads.per.data.dir`.

    Raises:
        LogDirectoryError: a directory is in use by another process, or none can be used.

    Attributes:
        logs: by partition, of all directories that are online.
        high_watermarks: as last written to the disk, for replicas to begin with.
        deletions: files and folders on their way out.
        future_logs: copies of logs that are moving to another directory.
        recovery_threads: for each directory, to load and to close logs.
        on_rolled: called when a log has closed segments to flush; see `take_rolled`.
    """

    def __init__(
        self,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        default_config: LogConfig | None = None,
        files: Files = REAL_FILES,
        chance: random.Random | None = None,
        recovery_threads: int = DEFAULT_RECOVERY_THREADS,
    ) -> None:
        self.clock = clock
        self.files = files
        self._chance = chance or random.Random(clock.now_ms())
        self.recovery_threads = recovery_threads
        self.default_config = default_config or LogConfig()
        self.logs: dict[TopicPartition, Log] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.deletions = DeferredDeletion()
        self.on_rolled: Callable[[], None] | None = None
        self._rolled: dict[TopicPartition, None] = {}
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._loading: LogLoading | None = None
        self.directories = LogDirectories(files, log_dirs)
        self._checkpoints = Checkpoints(self.directories, self.directories.note_failure)
        self.future_logs = FutureLogs(self, files, self._checkpoints, self._chance)

    @property
    def log_dirs(self) -> list[str]:
        """The paths of the directories, offline or not."""
        return [directory.path for directory in self.directories]

    # --- opening and closing -----------------------------------------------------------

    def load_logs(
        self,
        topic_configs: Mapping[str, LogConfig] | None = None,
        on_progress: Callable[[LoadProgress], None] | None = None,
    ) -> None:
        """Open every log in the directories, recovering those not closed properly.

        Args:
            topic_configs: settings by topic, where they are not the default.
            on_progress: called every second while that lasts.

        Raises:
            LogDirectoryError: no directory can be read, or a partition lies in two of them.
            LoadingStopped: `stop_loading` was called.
        """
        online = self.directories.online
        self._loading = LogLoading(
            self.files,
            online,
            clock=self.clock,
            default_config=self.default_config,
            topic_configs=topic_configs or {},
            threads=self.recovery_threads,
        )
        self._loading.run(on_progress)
        self.directories.require_one_online()
        for directory in online:
            self.high_watermarks.update(directory.written.get(HIGH_WATERMARKS_FILE, {}))
            for topic_partition, log in directory.logs.items():
                self._take_up(directory, topic_partition, log)
        self.future_logs.load(self._loading.futures)
        self._note_recovery()
        for directory, path in self._loading.doomed:
            if directory.is_online:
                self.deletions.add_folder(self.files, path, self.clock.monotonic_ms())
        self._loading = None

    def _note_recovery(self) -> None:
        """What a recovery has cut or made again is not on the disk for sure yet."""
        for directory in (each for each in self.directories.online if not each.was_clean):
            try:
                self._checkpoints.take_back(directory)
            except OSError as error:
                self.disk_failed(directory.path, error)

    @property
    def is_loading(self) -> bool:
        """Whether `load_logs` is under way, so that `stop_loading` stops it."""
        return self._loading is not None

    def stop_loading(self) -> None:
        """Have a `load_logs` that runs in another thread come to its end."""
        if self._loading is not None:
            self._loading.stop()

    def _take_up(self, directory: LogDirectory, topic_partition: TopicPartition, log: Log) -> None:
        directory.logs[topic_partition] = log
        self.logs[topic_partition] = log
        self._directory_of[topic_partition] = directory
        log.keeper = self
        log.segments.active.spread(self.jitter(), log.config)
        log.last_flush_ms = self.clock.now_ms()

    def close(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Close all logs, write the checkpoints, and let go of the directories.

        A directory in which anything fails is not marked as clean: the next start
        recovers what is in it. Callers write the high watermarks before.

        Args:
            broker_epoch: of the broker's registration, noted beside the logs.
        """
        for directory in self.directories.online:
            self._close_directory(directory, broker_epoch)
        self._let_go()

    def _close_directory(self, directory: LogDirectory, broker_epoch: int) -> None:
        failed: list[StorageError] = []

        def close(log: Log) -> None:
            try:
                log.close()
            except StorageError as error:
                failed.append(error)

        threads = max(self.recovery_threads, CLOSING_THREADS)
        logs = [*directory.logs.values(), *directory.futures.values()]
        for_all(logs, close, threads, "log-closing")
        is_written = True
        for name in (RECOVERY_POINTS_FILE, LOG_START_OFFSETS_FILE):
            offsets = checkpoint_of(name, directory.logs_in(name), {})
            is_written &= self._checkpoints.write(directory, name, offsets)
        if failed or not is_written:
            logger.warning("%s is not marked as closed properly: %s", directory.path, failed)
            return
        try:
            directory.mark_clean(broker_epoch)
        except OSError as error:
            logger.warning("%s is not marked as closed properly: %s", directory.path, error)

    def abandon(self) -> None:
        """Let go of everything as a crash would: nothing is written any more."""
        self._let_go()

    def _let_go(self) -> None:
        self.directories.release()
        self.logs.clear()
        self.future_logs.logs.clear()
        self._directory_of.clear()

    # --- logs --------------------------------------------------------------------------

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        """The log of a partition, if this broker has one."""
        return self.logs.get(topic_partition)

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """The directory that it lies in."""
        return self._directory_of.get(topic_partition)

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes | None = None,
        config: LogConfig | None = None,
        *,
        is_new: bool = True,
    ) -> Log:
        """The log of a partition, made if there is none, where it is wished or there are fewest.

        Args:
            topic_partition: whose log.
            topic_id: noted in a log that has none yet.
            config: the settings of a new log; the default where it is None.
            is_new: whether the partition was made just now; if not, it is not made as long
                as a directory that may hold it is offline.

        Raises:
            KafkaError: INCONSISTENT_TOPIC_ID, the log is of another topic of that name.
            StorageError: the disk fails, or the log may lie in a directory that is offline.
        """
        log = self.logs.get(topic_partition)
        if log is not None:
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            return log
        if not is_new and self.directories.has_offline:
            raise StorageError(
                f"the log of {topic_partition} may lie in a directory that is offline"
            )
        copy = self.future_logs.take_over(topic_partition, topic_id)
        if copy is not None:
            return copy
        failure = StorageError(f"no log directory is left for {topic_partition}")
        for directory in self.future_logs.candidates(topic_partition):
            try:
                log = self._make_log(directory, topic_partition, topic_id, config)
            except OSError as error:
                failure = StorageError(f"could not make a log for {topic_partition}: {error}")
                if is_disk_failure(error):
                    self.disk_failed(directory.path, error)
                continue
            self._take_up(directory, topic_partition, log)
            self.future_logs.satisfied(topic_partition)
            return log
        raise failure

    def _make_log(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig | None,
    ) -> Log:
        self._checkpoints.forget(directory, topic_partition, self.high_watermarks)
        return load_log(
            directory.folder_of(topic_partition),
            topic_partition,
            config or self.default_config,
            files=self.files,
            now_ms=self.clock.now_ms(),
            topic_id=topic_id,
        )

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Take away a partition's log, and its copy first; nothing happens if there is none.

        Its folder gets another name at once, and is removed after `file.delete.delay.ms`.

        Raises:
            StorageError: the disk fails, or the log may lie in a directory that is offline.
        """
        self.future_logs.delete(topic_partition)
        log = self.logs.get(topic_partition)
        if log is None:
            if self.directories.has_offline:
                raise StorageError(
                    f"the log of {topic_partition} may lie in a directory that is offline"
                )
            return
        directory = self._directory_of[topic_partition]
        path = directory.deleted_folder_of(topic_partition, random_uuid(self._chance).hex())
        log.move_folder(path)
        self._drop(topic_partition)
        due_ms = self.clock.monotonic_ms() + log.config.file_delete_delay_ms
        self.deletions.add_folder(self.files, path, due_ms)

    def use_log(self, directory: LogDirectory, topic_partition: TopicPartition, log: Log) -> None:
        """From now on this is a partition's log, in the place of the one it may have."""
        former = self._directory_of.get(topic_partition)
        if former is not None:
            del former.logs[topic_partition]
        self._take_up(directory, topic_partition, log)

    def _drop(self, topic_partition: TopicPartition) -> None:
        del self.logs[topic_partition]
        self._rolled.pop(topic_partition, None)
        self._directory_of.pop(topic_partition).logs.pop(topic_partition, None)
        self.high_watermarks.pop(topic_partition, None)

    # --- what logs tell (`LogKeeper`) --------------------------------------------------

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove files after a while."""
        self.deletions.add_files(files, paths, self.clock.monotonic_ms() + delay_ms)

    def disk_failed(self, path: str, error: OSError) -> None:
        """Take note that the disk of a directory fails; may be called by any thread.

        Args:
            path: of the directory or of anything in it.
            error: what the operating system said.
        """
        if error.errno in GONE and not self._is_known(path):
            return  # whoever asked was still at work on a log that was deleted meanwhile
        self.directories.note_failure(path, error)

    def _is_known(self, path: str) -> bool:
        """Whether a path can be there: not that of a partition that was deleted or has moved."""
        topic_partition = TopicPartition.from_folder_name(os.path.basename(path))
        log = None if topic_partition is None else self.logs.get(topic_partition)
        return topic_partition is None or (log is not None and log.directory == path)

    def rolled(self, log: LogAppender) -> None:
        """A log has a closed segment to flush."""
        self._rolled[log.topic_partition] = None
        if self.on_rolled is not None:
            self.on_rolled()

    def promises_taken_back(self, log: LogAppender) -> None:
        """Recovery point or start of a log have gone back, before it is cut."""
        self._checkpoints.take_back(self._directory_of[log.topic_partition])

    def jitter(self) -> float:
        """A random number from 0 to 1."""
        return self._chance.random()

    def take_rolled(self) -> Log | None:
        """A log that has closed segments to flush, the first that came; None if none has."""
        while self._rolled:
            topic_partition = next(iter(self._rolled))
            del self._rolled[topic_partition]
            log = self.logs.get(topic_partition)
            if log is not None:
                return log
        return None

    # --- failing directories -----------------------------------------------------------

    def take_failed_directories(self) -> list[FailedDirectory]:
        """Take the directories offline whose disks have failed since the last call.

        Their logs are gone from `logs`, and nothing is written to them any more.
        """
        return [
            self._take_offline(directory, why)
            for directory, why in self.directories.take_failures()
        ]

    def _take_offline(self, directory: LogDirectory, why: str) -> FailedDirectory:
        partitions = list(directory.logs)
        directory.fail(
            f"the log directory {directory.path} is offline until a restart, with "
            f"{len(partitions)} partitions: {why}"
        )
        for topic_partition in partitions:
            log = self.logs[topic_partition]
            self._drop(topic_partition)
            log.close_files()
        self.future_logs.directory_failed(directory)
        return FailedDirectory(directory.path, why, partitions)

    # --- work for timers ---------------------------------------------------------------

    def delete_old_segments(self, high_watermark_of: HighWatermarkOf) -> int:
        """Drop what retention lets go in every log; returns how many segments."""
        steps = delete_old_segments(self.logs, high_watermark_of, self.clock, len(self.logs) or 1)
        return sum(steps)

    def prepare_high_watermarks(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> Callable[[], None] | None:
        """Writing the high watermarks of this broker's replicas, as work for a thread.

        Returns:
            None where nothing has changed since the last time.
        """
        self.high_watermarks.update(high_watermarks)
        return self._checkpoints.prepare(HIGH_WATERMARKS_FILE, self.high_watermarks)

    def noted_recovery_point(self, topic_partition: TopicPartition) -> int:
        """Up to where a log is flushed, as the checkpoint on the disk says."""
        directory = self._directory_of.get(topic_partition)
        return 0 if directory is None else directory.offset(RECOVERY_POINTS_FILE, topic_partition)

    def prepare_recovery_points(self) -> Callable[[], None] | None:
        """Writing up to where each log is on the disk, likewise."""
        return self._checkpoints.prepare(RECOVERY_POINTS_FILE, {})

    def prepare_start_offsets(self) -> Callable[[], None] | None:
        """Writing where each log starts, likewise."""
        return self._checkpoints.prepare(LOG_START_OFFSETS_FILE, {})

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks and wait for the disk."""
        _run(self.prepare_high_watermarks(high_watermarks))

    def checkpoint_offsets(self) -> None:
        """Write recovery points and log start offsets, and wait for the disk."""
        _run(self.prepare_recovery_points())
        _run(self.prepare_start_offsets())


def _run(write: Callable[[], None] | None) -> None:
    if write is not None:
        write()
