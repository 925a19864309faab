"""All logs of a broker, and the directories they lie in (Kafka's LogManager).

It opens them at the start, makes and deletes them, moves them between directories, and takes a
directory offline whose disk fails. It has no timer of its own: the broker calls it.

A log that moves to another log directory is copied there first, as its *future log* (KIP-113),
in a folder `orders-0.<unique>-future`. When the copy has everything, it takes the log's place,
and the log's folder is removed. At every moment, a crash included, one folder holds all that was
flushed:

- Before the replacement, the log's does. A future log found at the start goes on from where it
  was.
- A future log is flushed as far as the log is when it replaces it, and the checkpoints beside it
  say so. Then the log's folder is renamed as pending deletion, and after that the future log's
  folder gets the log's name. A start that finds a future log and no log was interrupted in
  between, and takes the future log. (Kafka renames in the opposite order, and refuses to start on
  what a crash leaves.)
"""

from __future__ import annotations

import errno
import logging
import os.path
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from ...common.errors import KafkaError
from ...common.named_tuple import NamedTuple
from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ...runtime.rng import random_uuid
from ...runtime.steps import ITEMS_AT_LEAST, Steps, count_items, run_at_once
from ..checkpoint.checkpoint_file import CheckpointError
from ..errors import LogDirectoryError, StorageError, is_disk_failure
from ..file_names import (
    ABORTED_TRANSACTIONS_FILE,
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
)
from ..io.files import REAL_FILES, Files
from ..io.parallel import for_all
from ..log.log import Log
from ..log.log_config import LogConfig
from ..recovery.log_loader import load_log
from .checkpoints import Checkpoints, HighWatermarkOf, checkpoint_of, entry_of
from .deferred_deletion import DeferredDeletion
from .folder_swap import FolderSwap
from .log_directories import LogDirectories
from .log_directory import (
    FOLDER_NAME_MAX,
    NO_BROKER_EPOCH,
    LogDirectory,
    future_folder_name,
    future_partition,
)
from .log_loading import LoadProgress, LogLoading, Recovered

logger = logging.getLogger(__name__)

DEFAULT_RECOVERY_THREADS = 2
"""Kafka's num.recovery.threads.per.data.dir."""

CLOSING_THREADS = 16
"""For each directory. They wait for the disk, which syncs many files at once as fast as a few."""

GONE = (errno.ENOENT, errno.ENOTDIR)

PREFERENCES_MAX = 100_000
"""So many partitions without a log may have a preferred directory; the oldest preferences are
dropped first. Kafka remembers any number."""

SEGMENTS_AT_A_TIME = 6
"""So many of a log are deleted in one go: each has some files to rename."""

UNIQUE_LENGTH = 32


LOGS_AT_A_TIME = 16
"""So many are recovered before the first of them is served, by some threads."""


class FoundLog(NamedTuple):
    """A log in a directory, recovered or not.

    Attributes:
        topic_id: None where it has none, or a crash has torn it.
        directory: its folder.
    """

    topic_id: bytes | None
    directory: str


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
        rng: spreads the rolling of segments, and makes the names of folders unique.
        recovery_threads: `num.recovery.threads.per.data.dir`.

    Raises:
        LogDirectoryError: a directory is in use by another process, or none can be used.

    Attributes:
        logs: by partition, of all directories that are online.
        high_watermarks: as last written to the disk, for replicas to begin with.
        deletions: files and folders that are pending deletion.
        future_logs: by partition, copies of logs that are moving to another directory.
        unrecovered: partitions whose logs are not open yet, with their directories.
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
        rng: random.Random | None = None,
        recovery_threads: int = DEFAULT_RECOVERY_THREADS,
    ) -> None:
        self.clock = clock
        self.files = files
        self._rng = rng or random.Random(clock.now_ms())
        self.recovery_threads = recovery_threads
        self.default_config = default_config or LogConfig()
        self.logs: dict[TopicPartition, Log] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.deletions = DeferredDeletion()
        self.on_rolled: Callable[[], None] | None = None
        self._rolled: dict[TopicPartition, None] = {}
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self.future_logs: dict[TopicPartition, Log] = {}
        self._future_directory_of: dict[TopicPartition, LogDirectory] = {}
        self._future_owner = _FutureLogOwner(self)
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self.unrecovered: dict[TopicPartition, LogDirectory] = {}
        self._to_delete: set[TopicPartition] = set()
        """Logs that are deleted as soon as they are recovered."""
        self._loading: LogLoading | None = None
        self.directories = LogDirectories(files, log_dirs)
        self.checkpoints = Checkpoints(self.directories, self.directories.note_failure)

    @property
    def log_dirs(self) -> list[str]:
        """The paths of the directories, offline or not."""
        return [directory.path for directory in self.directories]

    # --- opening and closing -----------------------------------------------------------

    def load_logs(
        self,
        topic_configs: Mapping[str, LogConfig] | None = None,
        on_progress: Callable[[LoadProgress], None] | None = None,
        recovery_ms: int | None = None,
    ) -> None:
        """Open every log in the directories, recovering those not closed properly.

        Args:
            topic_configs: settings by topic, where they are not the default.
            on_progress: called every second while that lasts.
            recovery_ms: no further logs are recovered after so long: they stay `unrecovered`
                until `prepare_recovery`; None: all are recovered now.

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
            recovery_ms=recovery_ms,
        )
        self._loading.run(on_progress)
        self.directories.require_one_online()
        for directory in online:
            self.high_watermarks.update(directory.written.get(HIGH_WATERMARKS_FILE, {}))
            for topic_partition, log in directory.logs.items():
                self._take_up(directory, topic_partition, log)
            self.unrecovered |= dict.fromkeys(directory.unrecovered, directory)
        self._load_future_logs(self._loading.futures)
        self._lower_checkpoints(each for each in self.directories.online if not each.was_clean)
        for directory, path in self._loading.pending_deletion:
            if directory.is_online:
                self.deletions.add_folder(self.files, path, self.clock.monotonic_ms())
        if not self.unrecovered:
            self._loading = None

    @property
    def is_loading(self) -> bool:
        """Whether logs are being opened, so that `stop_loading` stops it."""
        return self._loading is not None

    def stop_loading(self) -> None:
        """End what opens logs in another thread."""
        if self._loading is not None:
            self._loading.stop()

    def prepare_recovery(
        self, first: Iterable[TopicPartition] = ()
    ) -> Callable[[], Recovered] | None:
        """The recovery of some logs that `load_logs` has left, as work for a thread.

        Its result is for `take_up_recovered`, and until then these logs stay as they are.

        Args:
            first: which to begin with.

        Returns:
            None where there are none.
        """
        loading, left = self._loading, self.unrecovered
        if loading is None or not left:
            return None
        wanted = dict.fromkeys(islice((each for each in first if each in left), LOGS_AT_A_TIME))
        others = (each for each in left if each not in wanted)
        chosen = [*wanted, *islice(others, LOGS_AT_A_TIME - len(wanted))]
        jobs = [(left[each], each) for each in chosen]
        return lambda: loading.recover(jobs)

    def take_up_recovered(self, recovered: Recovered) -> LoadProgress | None:
        """Have logs that were recovered among the others.

        Where one could not be opened, its directory has failed (`take_failed_directories`).

        Returns:
            how far the recovery has come; None at its end.
        """
        lowered: dict[LogDirectory, None] = {}
        for topic_partition, log in recovered.items():
            directory = self.unrecovered.get(topic_partition)
            if directory is None:  # it has failed meanwhile
                continue
            if isinstance(log, Exception):
                folder = directory.folder_of(topic_partition)
                self.directories.note_failure(
                    directory.path, OSError(f"cannot load the log in {folder}: {log}")
                )
                continue
            for name in (RECOVERY_POINTS_FILE, LOG_START_OFFSETS_FILE):
                if entry_of(name, log) != directory.offset(name, topic_partition):
                    lowered[directory] = None
            del self.unrecovered[topic_partition], directory.unrecovered[topic_partition]
            self._take_up(directory, topic_partition, log)
        self._lower_checkpoints(lowered)
        for topic_partition in recovered:  # in its order, which no hash decides
            if topic_partition not in self._to_delete or topic_partition not in self.logs:
                continue
            self._to_delete.discard(topic_partition)
            with suppress(StorageError):  # its topic is gone: the next start sets it aside
                self.delete_log(topic_partition)
        loading = self._loading
        assert loading is not None
        if self.unrecovered:
            return loading.progress(len(self.unrecovered))
        self._loading = None
        return None

    def _lower_checkpoints(self, directories: Iterable[LogDirectory]) -> None:
        """What a recovery has truncated or rebuilt need not be on the disk yet."""
        for directory in directories:
            try:
                self.checkpoints.lower(directory)
            except OSError as error:
                self.disk_failed(directory.path, error)

    def _take_up(self, directory: LogDirectory, topic_partition: TopicPartition, log: Log) -> None:
        directory.logs[topic_partition] = log
        self.logs[topic_partition] = log
        self._directory_of[topic_partition] = directory
        log.owner = self
        log.segments.active.spread(self.jitter(), log.config)
        log.last_flush_ms = self.clock.monotonic_ms()

    def close(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Close all logs, write the checkpoints, and release the directories.

        A directory in which anything fails is not marked as clean: the next start
        recovers what is in it. Callers write the high watermarks before.

        Args:
            broker_epoch: of the broker's registration, noted beside the logs.
        """
        for directory in self.directories.online:
            self._close_directory(directory, broker_epoch)
        self.abandon()

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
        for name in (RECOVERY_POINTS_FILE, LOG_START_OFFSETS_FILE, ABORTED_TRANSACTIONS_FILE):
            offsets = checkpoint_of(name, directory)
            is_written &= self.checkpoints.write(directory, name, offsets)
        if failed or not is_written:
            logger.warning("unclean shutdown of %s: %s", directory.path, failed)
            return
        if directory.unrecovered:
            logger.warning(
                "unclean shutdown of %s: %d logs were not recovered yet",
                directory.path,
                len(directory.unrecovered),
            )
            return
        try:
            directory.mark_clean(broker_epoch)
        except OSError as error:
            logger.warning("unclean shutdown of %s: %s", directory.path, error)

    def abandon(self) -> None:
        """Release everything as a crash would: nothing is written any more."""
        self.directories.release()
        self.logs.clear()
        self.future_logs.clear()
        self.unrecovered.clear()
        self._directory_of.clear()
        self._future_directory_of.clear()

    # --- logs --------------------------------------------------------------------------

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        """The log of a partition, if this broker has one."""
        return self.logs.get(topic_partition)

    def has_log(self, topic_partition: TopicPartition) -> bool:
        """Whether this broker has a log of a partition, which need not be recovered yet."""
        return topic_partition in self.logs or topic_partition in self.unrecovered

    def found_logs(self) -> dict[TopicPartition, FoundLog]:
        """All logs, recovered or not."""
        found = {each: FoundLog(log.topic_id, log.directory) for each, log in self.logs.items()}
        for topic_partition, directory in self.unrecovered.items():
            folder = directory.folder_of(topic_partition)
            found[topic_partition] = FoundLog(directory.unrecovered[topic_partition], folder)
        return found

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
        """The log of a partition, made if there is none, in the preferred directory if it has one.

        Args:
            topic_partition: whose log.
            topic_id: noted in a log that has none yet.
            config: the settings of a new log; the default where it is None.
            is_new: whether the partition was made just now; if not, its log is not made as long
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
        if topic_partition in self.unrecovered:
            raise StorageError(f"the log of {topic_partition} is not recovered yet")
        if not is_new and self.directories.has_offline:
            raise StorageError(
                f"the log of {topic_partition} may lie in a directory that is offline"
            )
        future = self._promote_future_log(topic_partition, topic_id)
        if future is not None:
            return future
        failure = StorageError(f"no log directory is online for {topic_partition}")
        for directory in self.candidates(topic_partition):
            folder = directory.folder_of(topic_partition)
            try:
                log = self._make_log(directory, folder, topic_partition, topic_id, config)
            except OSError as error:
                failure = StorageError(f"could not make a log for {topic_partition}: {error}")
                if is_disk_failure(error):
                    self.disk_failed(directory.path, error)
                continue
            self._take_up(directory, topic_partition, log)
            self._preferred.pop(topic_partition, None)
            return log
        raise failure

    def prefer_directory(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        """The log of a partition that has none yet is to be made in that directory (KIP-113)."""
        self._preferred.pop(topic_partition, None)
        while len(self._preferred) >= PREFERENCES_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic_partition] = directory

    def candidates(self, topic_partition: TopicPartition) -> list[LogDirectory]:
        """Where a log may be made, the best first: the preferred directory, or that with fewest."""
        online = self.directories.online
        preferred = self._preferred.get(topic_partition)
        if preferred in online:
            return [preferred]
        return sorted(online, key=lambda each: len(each.logs) + len(each.unrecovered))

    def _make_log(
        self,
        directory: LogDirectory,
        folder: str,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig | None,
    ) -> Log:
        self.checkpoints.forget(directory, topic_partition, self.high_watermarks.get)
        return load_log(
            folder,
            topic_partition,
            config or self.default_config,
            files=self.files,
            now_ms=self.clock.now_ms(),
            topic_id=topic_id,
        )

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Delete a partition's log and its future log; nothing happens if there is none.

        Its folder is renamed at once, or when it is recovered, and removed after
        `file.delete.delay.ms`.

        Raises:
            StorageError: the disk fails, or the log may lie in a directory that is offline.
        """
        self.delete_future_log(topic_partition)
        if topic_partition in self.unrecovered:
            self._to_delete.add(topic_partition)
            return
        log = self.logs.get(topic_partition)
        if log is None:
            if self.directories.has_offline:
                raise StorageError(
                    f"the log of {topic_partition} may lie in a directory that is offline"
                )
            return
        path = self._directory_of[topic_partition].deleted_folder_of(
            topic_partition, self._unique()
        )
        log.move_folder(path)
        self._drop(topic_partition)
        self._delete_folder_later(path, log.config.file_delete_delay_ms)

    def set_aside(self, topic_partition: TopicPartition) -> str:
        """Rename the folder of a log whose topic does not exist, and keep what is in it.

        One that is not recovered yet must not be under way.

        Returns:
            The folder's new path.

        Raises:
            StorageError: the disk fails.
        """
        directory = self.unrecovered.get(topic_partition)
        if directory is None:
            log, directory = self.logs[topic_partition], self._directory_of[topic_partition]
            path = directory.stray_folder_of(topic_partition, self._unique())
            log.move_folder(path)
            self._drop(topic_partition)
            return path
        folder = directory.folder_of(topic_partition)
        path = directory.stray_folder_of(topic_partition, self._unique())
        try:
            self.files.rename(folder, path)
        except OSError as error:
            raise StorageError(f"could not rename {folder}: {error}") from error
        del self.unrecovered[topic_partition], directory.unrecovered[topic_partition]
        self.high_watermarks.pop(topic_partition, None)
        return path

    def _drop(self, topic_partition: TopicPartition) -> None:
        del self.logs[topic_partition]
        self._rolled.pop(topic_partition, None)
        self._directory_of.pop(topic_partition).logs.pop(topic_partition, None)
        self.high_watermarks.pop(topic_partition, None)

    # --- future logs -------------------------------------------------------------------

    def future_directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Where a partition's log is moving to; None if it is not."""
        return self._future_directory_of.get(topic_partition)

    def create_future_log(
        self,
        topic_partition: TopicPartition,
        directory: LogDirectory,
        topic_id: bytes | None,
        config: LogConfig,
    ) -> Log:
        """An empty future log of a partition in another directory.

        Raises:
            StorageError: the disk fails, or some directory is offline: there may be a future
                log in it already.
        """
        if self.directories.has_offline:
            raise StorageError(
                f"a future log of {topic_partition} may lie in a directory that is offline"
            )
        folder = directory.future_folder_of(topic_partition, self._unique())
        try:
            log = self._make_log(directory, folder, topic_partition, topic_id, config)
        except OSError as error:
            if is_disk_failure(error):
                self.disk_failed(directory.path, error)
            raise StorageError(f"could not make {folder}: {error}") from error
        self._add_future_log(topic_partition, directory, log)
        return log

    def delete_future_log(self, topic_partition: TopicPartition) -> None:
        """Delete a future log, if there is one; its folder is removed after a delay."""
        log = self.future_logs.get(topic_partition)
        if log is None:
            return
        path = self._future_directory_of[topic_partition].deleted_folder_of(
            topic_partition, self._unique()
        )
        log.move_folder(path)
        self._drop_future_log(topic_partition)
        self._delete_folder_later(path, log.config.file_delete_delay_ms)

    def replace_current_with_future_log(self, topic_partition: TopicPartition) -> Log:
        """Put a future log that has everything in the place of the log; returns it.

        Slices of the old log stay readable. To be called when both end at the same offset,
        nothing is staged on either, and the future log is flushed as far as the log is.

        Raises:
            StorageError: the disk fails; the log is what it was.
        """
        future, current = self.future_logs[topic_partition], self.logs[topic_partition]
        target = self._future_directory_of[topic_partition]
        source = self._directory_of[topic_partition]
        assert future.log_end_offset == current.staged_end_offset == current.log_end_offset
        assert future.recovery_point >= current.recovery_point
        swap = FolderSwap(
            self.files,
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
            self.checkpoints.lower(target)  # a start must not go by older ones
            swap.run()
        except OSError as error:
            if is_disk_failure(error):
                self.disk_failed(swap.active_path, error)
            if swap.undo_failure is not None:
                self.directories.note_failure(source.path, swap.undo_failure)
            raise StorageError(f"could not replace {current.directory}: {error}") from error
        future.relocate(swap.final)
        self._drop_future_log(topic_partition)
        del source.logs[topic_partition]
        self._take_up(target, topic_partition, future)
        current.close_files()
        if current.on_cut is not None:
            current.on_cut(0)
        self._delete_folder_later(swap.deleted, current.config.file_delete_delay_ms)
        return future

    def _promote_future_log(
        self, topic_partition: TopicPartition, topic_id: bytes | None
    ) -> Log | None:
        """The future log of a partition that has no log becomes its log.

        A crash between the two renames of a replacement leaves that. A future log of another
        topic of that name is deleted.
        """
        log = self.future_logs.get(topic_partition)
        if log is None or self.directories.has_offline:
            return None
        if topic_id is not None and log.topic_id != topic_id:
            self.delete_future_log(topic_partition)
            return None
        directory = self._future_directory_of[topic_partition]
        path = directory.folder_of(topic_partition)
        try:
            self.files.rename(log.directory, path)
            log.relocate(path)
            self.files.sync_directory(directory.path)
        except OSError as error:
            if is_disk_failure(error):
                self.disk_failed(directory.path, error)
            raise StorageError(f"could not rename {log.directory}: {error}") from error
        logger.warning(
            "%s has a future log in %s and no log: the future log, up to offset %d, is its log now",
            topic_partition,
            directory.path,
            log.log_end_offset,
        )
        self._drop_future_log(topic_partition)
        self._take_up(directory, topic_partition, log)
        return log

    def _load_future_logs(self, found: Sequence[tuple[LogDirectory, TopicPartition, str]]) -> None:
        """Open the future logs that a start has found.

        Of several for one partition the longest is kept. One that cannot be opened is removed
        if the partition has a log; else it is left for an operator.
        """
        for directory, topic_partition, folder in found:
            if not directory.is_online:
                continue
            log = self._load_future_log(directory, topic_partition, folder)
            if log is None:
                continue
            if topic_partition in directory.logs or topic_partition in directory.unrecovered:
                self._discard(log, "the log itself is in the same directory")
                continue
            other = self.future_logs.get(topic_partition)
            if other is not None:
                if other.log_end_offset >= log.log_end_offset:
                    self._discard(log, f"there is one in {other.directory}")
                    continue
                self._drop_future_log(topic_partition)
                self._discard(other, f"there is a longer one in {folder}")
            self._add_future_log(topic_partition, directory, log)

    def _load_future_log(
        self, directory: LogDirectory, topic_partition: TopicPartition, folder: str
    ) -> Log | None:
        try:
            log = load_log(
                folder,
                topic_partition,
                self.default_config,
                files=self.files,
                now_ms=self.clock.now_ms(),
                clean_shutdown=directory.was_clean,
                recovery_point=directory.offset(RECOVERY_POINTS_FILE, topic_partition),
                log_start_offset=directory.offset(LOG_START_OFFSETS_FILE, topic_partition),
                aborted_count=directory.offset(ABORTED_TRANSACTIONS_FILE, topic_partition),
                gaps_end=0,  # truncated where compaction left a gap, it is copied from there
            )
        except OSError as error:
            logger.error("future log in %s cannot be read: %s", folder, error)
            self.disk_failed(directory.path, error)
            return None
        except (CheckpointError, KafkaError, LogDirectoryError) as error:
            has_log = self.has_log(topic_partition)
            verdict = "removing it" if has_log else "leaving it alone"
            logger.error("future log in %s is corrupt, %s: %s", folder, verdict, error)
            if has_log:
                self._delete_folder_later(folder, 0)
            return None
        log.close_files()
        return log

    def _discard(self, log: Log, why: str) -> None:
        logger.warning("removing the future log in %s: %s", log.directory, why)
        log.close_files()
        self._delete_folder_later(log.directory, 0)

    def _add_future_log(
        self, topic_partition: TopicPartition, directory: LogDirectory, log: Log
    ) -> None:
        log.owner = self._future_owner
        directory.futures[topic_partition] = log
        self.future_logs[topic_partition] = log
        self._future_directory_of[topic_partition] = directory

    def _drop_future_log(self, topic_partition: TopicPartition) -> None:
        del self.future_logs[topic_partition]
        del self._future_directory_of.pop(topic_partition).futures[topic_partition]

    def _unique(self) -> str:
        return random_uuid(self._rng).hex()

    def _delete_folder_later(self, folder: str, delay_ms: int) -> None:
        due_ms = self.clock.monotonic_ms() + delay_ms
        self.deletions.add_folder(self.files, folder, due_ms)

    # --- what logs report (`LogOwner`) -------------------------------------------------

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove files after a while."""
        self.deletions.add_files(files, paths, self.clock.monotonic_ms() + delay_ms)

    def disk_failed(self, path: str, error: OSError) -> None:
        """The disk of a directory failed; may be called by any thread.

        Args:
            path: of the directory or of anything in it.
            error: what the operating system said.
        """
        if error.errno in GONE and not self._is_known(path):
            return  # the log was deleted or moved while this was under way
        self.directories.note_failure(path, error)

    def _is_known(self, path: str) -> bool:
        """Whether a path should exist: not the folder of a log that was deleted or has moved."""
        name = os.path.basename(path)
        logs = self.logs
        topic_partition = TopicPartition.from_folder_name(name)
        if topic_partition is None:
            topic_partition, logs = future_partition(name), self.future_logs
        if topic_partition is None:
            return True
        log = logs.get(topic_partition)
        if log is None:
            return logs is self.logs and topic_partition in self.unrecovered
        return log.directory == path

    def rolled(self, topic_partition: TopicPartition) -> None:
        """A log has a closed segment to flush."""
        self._rolled[topic_partition] = None
        if self.on_rolled is not None:
            self.on_rolled()

    def recovery_point_lowered(self, topic_partition: TopicPartition) -> None:
        """Recovery point or log start offset went back, before the log is truncated."""
        self.checkpoints.lower(self._directory_of[topic_partition])

    def jitter(self) -> float:
        """A random number from 0 to 1."""
        return self._rng.random()

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
        partitions = [*directory.logs, *directory.unrecovered]
        directory.fail(
            f"the log directory {directory.path} is offline until a restart, with "
            f"{len(partitions)} partitions: {why}"
        )
        for topic_partition, log in list(directory.logs.items()):
            self._drop(topic_partition)
            log.close_files()
        for topic_partition in directory.unrecovered:
            del self.unrecovered[topic_partition]
        directory.unrecovered.clear()
        for topic_partition in list(directory.futures):
            self.future_logs[topic_partition].close_files()
            self._drop_future_log(topic_partition)
        return FailedDirectory(directory.path, why, partitions)

    # --- work for timers ---------------------------------------------------------------

    def delete_old_segments(self, high_watermark_of: HighWatermarkOf) -> Steps[int]:
        """Apply retention to every log.

        A log whose disk fails is skipped and tried again the next time. Between two steps logs
        may come and go.

        Args:
            high_watermark_of: gives a partition's; what is not yet replicated stays.

        Returns:
            How many segments were deleted.
        """
        count = 0
        for topic_partition in list(self.logs):
            yield
            while deleted := self._delete_some(topic_partition, high_watermark_of):
                count += deleted
                yield from count_items(ITEMS_AT_LEAST)  # files were renamed, and maybe made
        return count

    def _delete_some(
        self, topic_partition: TopicPartition, high_watermark_of: HighWatermarkOf
    ) -> int:
        log = self.logs.get(topic_partition)
        if log is None:
            return 0
        try:
            high_watermark = high_watermark_of(topic_partition) or 0
            return log.delete_old_segments(self.clock.now_ms(), high_watermark, SEGMENTS_AT_A_TIME)
        except StorageError as error:
            logger.warning("%s", error.message)
            return 0

    def remove_expired_producers(self) -> Steps[None]:
        """Forget producers that have been silent for `producer.id.expiration.ms`."""
        now_ms = self.clock.now_ms()
        for log in list(self.logs.values()):
            yield
            yield from log.producers.remove_expired(now_ms, log.config.producer_id_expiration_ms)

    def logs_to_flush(self) -> Steps[list[Log]]:
        """The logs that hold unflushed batches for longer than their `flush.ms`."""
        now_ms = self.clock.monotonic_ms()
        found = []
        for log in list(self.logs.values()):
            yield
            if (
                log.recovery_point < log.log_end_offset
                and now_ms - log.last_flush_ms >= log.config.flush_ms
            ):
                found.append(log)
        return found

    def prepare_high_watermarks(
        self, high_watermark_of: HighWatermarkOf
    ) -> Steps[Callable[[], None] | None]:
        """The writing of the replicas' high watermarks, as work for a thread.

        Args:
            high_watermark_of: of a replica, when it is looked at; None where there is no replica,
                whose last one counts.

        Returns:
            None where nothing has changed since the last time.
        """

        def latest(topic_partition: TopicPartition) -> int | None:
            high_watermark = high_watermark_of(topic_partition)
            if high_watermark is not None:
                self.high_watermarks[topic_partition] = high_watermark
            return self.high_watermarks.get(topic_partition)

        return self.checkpoints.prepare(HIGH_WATERMARKS_FILE, latest)

    def noted_recovery_point(self, topic_partition: TopicPartition) -> int:
        """Up to where a log is flushed, as the checkpoint on the disk says."""
        directory = self._directory_of.get(topic_partition)
        return 0 if directory is None else directory.offset(RECOVERY_POINTS_FILE, topic_partition)

    def prepare_recovery_points(self) -> Steps[Callable[[], None] | None]:
        """The same for the recovery points."""
        return self.checkpoints.prepare(RECOVERY_POINTS_FILE)

    def prepare_start_offsets(self) -> Steps[Callable[[], None] | None]:
        """The same for the log start offsets."""
        return self.checkpoints.prepare(LOG_START_OFFSETS_FILE)

    def checkpoint_high_watermarks(self, high_watermark_of: HighWatermarkOf) -> None:
        """Write the high watermarks and wait for the disk."""
        _write(self.prepare_high_watermarks(high_watermark_of))

    def checkpoint_offsets(self) -> None:
        """Write recovery points and log start offsets, and wait for the disk."""
        _write(self.prepare_recovery_points())
        _write(self.prepare_start_offsets())


def _write(preparation: Steps[Callable[[], None] | None]) -> None:
    write = run_at_once(preparation)
    if write is not None:
        write()


class _FutureLogOwner:
    """The log manager, as future logs see it. What copies a log flushes it, too."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self.disk_failed = manager.disk_failed
        self.jitter = manager.jitter

    def delete_later(self, files: Files, paths: Sequence[str], delay_ms: int) -> None:
        """Remove files soon: a future log has no readers."""
        self._manager.delete_later(files, paths, 0)

    def rolled(self, topic_partition: TopicPartition) -> None:
        """Nothing."""

    def recovery_point_lowered(self, topic_partition: TopicPartition) -> None:
        """Recovery point or log start offset went back, before the future log is truncated."""
        directory = self._manager.future_directory_of(topic_partition)
        assert directory is not None
        self._manager.checkpoints.lower(directory)


def can_move(topic_partition: TopicPartition) -> bool:
    """Whether the name of a future log's folder would not be too long (KAFKA-4893)."""
    return len(future_folder_name(topic_partition, "0" * UNIQUE_LENGTH)) <= FOLDER_NAME_MAX
