"""All logs of a broker, and the directories they lie in (Kafka's LogManager).

It opens them at the start, makes and deletes them, and writes the checkpoints. It has no
timer of its own: the broker calls it when the time has come.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from ..protocol.errors import KafkaError
from ..runtime.clock import Clock
from ..runtime.randomness import random_uuid, uuid_to_text
from .checkpoint_file import CheckpointError
from .errors import LogDirectoryError, StorageError
from .files import REAL_FILES, Files
from .log import Log
from .log_config import LogConfig
from .log_directory import (
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
    LogDirectory,
)
from .log_loader import load_log
from .topic_partition import TopicPartition

OffsetsOf = Callable[[Mapping[TopicPartition, Log]], dict[TopicPartition, int]]


class LogManager:
    """Locks the log directories when it is made; `load_logs` opens what is in them.

    Args:
        log_dirs: paths, at least one; each is made if need be.
        clock: gives the wall time.
        default_config: of logs whose topic has no settings of its own.
        files: the file system.

    Raises:
        LogDirectoryError: a directory is in use by another process, or cannot be used.
    """

    def __init__(
        self,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        default_config: LogConfig | None = None,
        files: Files = REAL_FILES,
    ) -> None:
        self._clock = clock
        self._files = files
        self.default_config = default_config or LogConfig()
        self.logs: dict[TopicPartition, Log] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        """As last written to the disk, for replicas to begin with."""
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._directories: list[LogDirectory] = []
        self._written: dict[tuple[LogDirectory, str], dict[TopicPartition, int]] = {}
        try:
            for path in log_dirs:
                self._directories.append(LogDirectory(files, path))
        except LogDirectoryError:
            self._release()
            raise

    @property
    def log_dirs(self) -> list[str]:
        """The paths of the directories."""
        return [directory.path for directory in self._directories]

    # --- opening and closing -----------------------------------------------------------

    def cluster_id(self) -> str | None:
        """The cluster that the directories belong to, or None if all are new.

        Raises:
            LogDirectoryError: a `meta.properties` is damaged.
        """
        for directory in self._directories:
            found = directory.meta_properties()
            if found is not None and found.cluster_id is not None:
                return found.cluster_id
        return None

    def claim_directories(self, node_id: int, cluster_id: str, source: random.Random) -> None:
        """Mark new directories as this broker's, and make sure that the others are.

        Args:
            node_id: the broker's id.
            cluster_id: the cluster's id.
            source: makes the ids of new directories.

        Raises:
            LogDirectoryError: one belongs to another broker or cluster, or cannot be written.
        """
        for directory in self._directories:
            directory_id = uuid_to_text(random_uuid(source))
            try:
                directory.claim(node_id, cluster_id, directory_id)
            except OSError as error:
                raise LogDirectoryError(f"cannot write {directory.path}: {error}") from error

    def load_logs(self, topic_configs: Mapping[str, LogConfig] | None = None) -> None:
        """Open every log in the directories, recovering those not closed properly.

        Args:
            topic_configs: settings by topic, where they are not the default.

        Raises:
            LogDirectoryError: a directory or a log in it cannot be read.
        """
        for directory in self._directories:
            try:
                self._load_directory(directory, topic_configs or {})
            except (OSError, CheckpointError, KafkaError) as error:
                raise LogDirectoryError(
                    f"cannot load the logs in {directory.path}: {error}"
                ) from error

    def _load_directory(
        self, directory: LogDirectory, topic_configs: Mapping[str, LogConfig]
    ) -> None:
        recovery_points = directory.read_checkpoint(RECOVERY_POINTS_FILE)
        start_offsets = directory.read_checkpoint(LOG_START_OFFSETS_FILE)
        self.high_watermarks.update(directory.read_checkpoint(HIGH_WATERMARKS_FILE))
        partitions = directory.partitions()
        directory.mark_in_use()
        for topic_partition in partitions:
            if topic_partition in self.logs:
                raise LogDirectoryError(
                    f"{topic_partition} lies both in {directory.path} and in "
                    f"{self._directory_of[topic_partition].path}"
                )
            self.logs[topic_partition] = load_log(
                directory.folder_of(topic_partition),
                topic_partition,
                topic_configs.get(topic_partition.topic, self.default_config),
                files=self._files,
                now_ms=self._clock.now_ms(),
                clean_shutdown=directory.was_clean,
                recovery_point=recovery_points.get(topic_partition, 0),
                log_start_offset=start_offsets.get(topic_partition, 0),
            )
            self._directory_of[topic_partition] = directory

    def close(self) -> None:
        """Close all logs, write the checkpoints, and let go of the directories.

        A directory in which anything fails is not marked as clean: the next start
        recovers what is in it. Callers write the high watermarks before.
        """
        for directory in self._directories:
            closed = [_close(log) for log in self._logs_in(directory).values()]
            with suppress(OSError, StorageError):
                self._checkpoint_offsets(directory)
                if all(closed):
                    directory.mark_clean()
        self._release()
        self.logs.clear()
        self._directory_of.clear()

    def abandon(self) -> None:
        """Let go of everything as a crash would: nothing is written any more."""
        self._release()
        self.logs.clear()
        self._directory_of.clear()

    def _release(self) -> None:
        for directory in self._directories:
            directory.release()

    # --- logs --------------------------------------------------------------------------

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        """The log of a partition, if this broker has one."""
        return self.logs.get(topic_partition)

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes | None = None,
        config: LogConfig | None = None,
    ) -> Log:
        """The log of a partition, made in the directory with the fewest if there is none.

        Args:
            topic_partition: whose log.
            topic_id: noted in a log that has none yet.
            config: the settings of a new log; the default where it is None.

        Raises:
            KafkaError: INCONSISTENT_TOPIC_ID, the log is of another topic of that name.
            StorageError: the disk fails.
        """
        log = self.logs.get(topic_partition)
        if log is not None:
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            return log
        directory = min(self._directories, key=lambda each: len(self._logs_in(each)))
        try:
            log = load_log(
                directory.folder_of(topic_partition),
                topic_partition,
                config or self.default_config,
                files=self._files,
                now_ms=self._clock.now_ms(),
                topic_id=topic_id,
            )
        except OSError as error:
            raise StorageError(f"could not make a log for {topic_partition}: {error}") from error
        self.logs[topic_partition] = log
        self._directory_of[topic_partition] = directory
        return log

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Remove a partition's log from the disk; nothing happens if there is none.

        Raises:
            StorageError: the disk fails.
        """
        log = self.logs.pop(topic_partition, None)
        if log is None:
            return
        del self._directory_of[topic_partition]
        self.high_watermarks.pop(topic_partition, None)
        log.delete()

    # --- work for timers ---------------------------------------------------------------

    def delete_old_segments(self, high_watermark_of: Callable[[TopicPartition], int]) -> int:
        """Drop what retention lets go in every log; returns how many segments.

        A log whose disk fails is passed over and tried again the next time.
        """
        now_ms = self._clock.now_ms()
        deleted = 0
        for topic_partition, log in self.logs.items():
            try:
                deleted += log.delete_old_segments(now_ms, high_watermark_of(topic_partition))
            except StorageError:
                continue
        return deleted

    def remove_expired_producers(self) -> None:
        """Forget producers that have been silent for `producer.id.expiration.ms`."""
        now_ms = self._clock.now_ms()
        for log in self.logs.values():
            log.producers.remove_expired(now_ms, log.config.producer_id_expiration_ms)

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks of this broker's replicas, and wait for the disk.

        Raises:
            StorageError: the disk fails.
        """
        write = self.prepare_high_watermarks(high_watermarks)
        if write is not None:
            write()

    def prepare_high_watermarks(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> Callable[[], None] | None:
        """The same as work that a thread can do, since it waits for the disk.

        Returns:
            None where nothing has changed since the last time; else what writes the files,
            and raises StorageError where the disk fails.
        """
        self.high_watermarks.update(high_watermarks)
        return self._prepare(
            HIGH_WATERMARKS_FILE,
            {
                directory: {
                    topic_partition: self.high_watermarks[topic_partition]
                    for topic_partition in self._logs_in(directory)
                    if topic_partition in self.high_watermarks
                }
                for directory in self._directories
            },
        )

    def prepare_offsets(self) -> Callable[[], None] | None:
        """Recovery points and log start offsets, likewise."""
        writes = [
            self._prepare(RECOVERY_POINTS_FILE, self._each(_recovery_points)),
            self._prepare(LOG_START_OFFSETS_FILE, self._each(_start_offsets)),
        ]
        changed = [write for write in writes if write is not None]

        def write_all() -> None:
            for write in changed:
                write()

        return write_all if changed else None

    def checkpoint_offsets(self) -> None:
        """Write recovery points and log start offsets, and wait for the disk.

        Raises:
            StorageError: the disk fails.
        """
        write = self.prepare_offsets()
        if write is not None:
            write()

    def _each(self, offsets_of: OffsetsOf) -> dict[LogDirectory, dict[TopicPartition, int]]:
        return {directory: offsets_of(self._logs_in(directory)) for directory in self._directories}

    def _prepare(
        self, name: str, by_directory: dict[LogDirectory, dict[TopicPartition, int]]
    ) -> Callable[[], None] | None:
        changed = [
            (directory, offsets)
            for directory, offsets in by_directory.items()
            if self._written.get((directory, name)) != offsets
        ]
        if not changed:
            return None

        def write() -> None:
            for directory, offsets in changed:
                self._write(directory, name, offsets)

        return write

    def _checkpoint_offsets(self, directory: LogDirectory) -> None:
        logs = self._logs_in(directory)
        self._write(directory, RECOVERY_POINTS_FILE, _recovery_points(logs))
        self._write(directory, LOG_START_OFFSETS_FILE, _start_offsets(logs))

    def _write(
        self, directory: LogDirectory, name: str, offsets: dict[TopicPartition, int]
    ) -> None:
        try:
            directory.write_checkpoint(name, offsets)
        except OSError as error:
            raise StorageError(f"could not write {name} in {directory.path}: {error}") from error
        self._written[directory, name] = offsets

    def _logs_in(self, directory: LogDirectory) -> dict[TopicPartition, Log]:
        if len(self._directories) == 1:
            return self.logs
        return {
            topic_partition: log
            for topic_partition, log in self.logs.items()
            if self._directory_of[topic_partition] is directory
        }


def _close(log: Log) -> bool:
    """Close a log; whether the next start may take it at its word."""
    try:
        log.close()
    except StorageError:
        return False
    return True


def _recovery_points(logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, int]:
    return {topic_partition: log.recovery_point for topic_partition, log in logs.items()}


def _start_offsets(logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, int]:
    return {
        topic_partition: log.log_start_offset
        for topic_partition, log in logs.items()
        if log.log_start_offset > log.segments.first.base_offset
    }
