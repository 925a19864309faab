"""One of a broker's log directories: its lock, its marker files, its checkpoints, its logs."""

from __future__ import annotations

import logging
import os.path
import threading
from collections.abc import Mapping

from ...common.named_tuple import NamedTuple
from ...common.topic_partition import TopicPartition
from ..checkpoint.checkpoint_file import CheckpointError, read_offsets, write_offsets
from ..checkpoint.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from ..errors import LogDirectoryError
from ..file_names import (
    ABORTED_TRANSACTIONS_FILE,
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSETS_FILE,
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    HIGH_WATERMARKS_FILE,
    LOCK_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
    STRAY_SUFFIX,
)
from ..io.files import FileLock, Files
from ..log.log import Log

logger = logging.getLogger(__name__)

CHECKPOINT_FILES = (
    RECOVERY_POINTS_FILE,
    LOG_START_OFFSETS_FILE,
    HIGH_WATERMARKS_FILE,
    ABORTED_TRANSACTIONS_FILE,
)

NO_BROKER_EPOCH = -1

FOLDER_NAME_MAX = 255
"""Most file systems take no longer names."""

IGNORED_SUFFIXES = (FUTURE_SUFFIX, STRAY_SUFFIX)
"""Of folders that are neither served nor removed: Kafka's stray logs, and future logs whose name
has no partition."""

KRAFT_TOPIC = "__cluster_metadata"
"""The log of Kafka's KRaft controllers, which this broker does not serve."""


class DirectoryContents(NamedTuple):
    """What lies in a directory."""

    partitions: list[TopicPartition]
    pending_deletion: list[str]
    """Folders of logs that were deleted."""
    futures: list[tuple[TopicPartition, str]]
    """Partitions whose logs are moving into this directory, with their folders."""


class LogDirectory:
    """A directory taken by this process alone, from `__init__` until `release`.

    One that cannot be used is offline from the beginning, one whose disk fails from then
    on; nothing is read from it or written to it any more.

    Args:
        path: made if it is not there.

    Raises:
        LogDirectoryError: another process has it.

    Attributes:
        failure: why it is offline; None while it is in use.
        logs: what it holds, while it is in use.
        unrecovered: logs that it holds, too, and that are not open yet, with the ids of their
            topics where these are known.
        futures: copies of logs that are moving here from other directories; see `LogManager`.
        written: by checkpoint file, what it has.
        was_clean: whether the last broker to use it closed everything properly.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.failure: str | None = None
        self.logs: dict[TopicPartition, Log] = {}
        self.unrecovered: dict[TopicPartition, bytes | None] = {}
        self.futures: dict[TopicPartition, Log] = {}
        self.written: dict[str, Mapping[TopicPartition, int]] = {}
        self.was_clean = False
        self._lock: FileLock | None = None
        self._checkpoint_lock = threading.Lock()
        self._serials: dict[str, int] = {}
        try:
            files.make_directory(path)
            self._lock = files.lock(self._in(LOCK_FILE))
            if self._lock is not None:
                self.was_clean = files.exists(self._in(CLEAN_SHUTDOWN_FILE))
        except OSError as error:
            self.fail(f"cannot use the log directory {path}: {error}")
            return
        if self._lock is None:
            raise LogDirectoryError(
                f"another broker is using the log directory {path}: stop it, or choose another"
            )

    @property
    def is_online(self) -> bool:
        """Whether it is in use."""
        return self.failure is None

    def fail(self, why: str) -> None:
        """Take it offline, until a restart.

        Its lock is kept: no other broker may repair what is in it meanwhile.

        Args:
            why: a sentence for the broker's log.
        """
        logger.error("%s", why)
        self.failure = why

    def mark_in_use(self) -> None:
        """Remove the mark of a clean shutdown, so that it cannot come back after a crash."""
        if self.was_clean:
            self._files.remove(self._in(CLEAN_SHUTDOWN_FILE))
            self._files.sync_directory(self.path)

    def mark_clean(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Everything in it has been closed: the next start may trust it.

        Args:
            broker_epoch: of the broker's registration, for controllers that read it (KIP-966).
        """
        text = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
        path = self._in(CLEAN_SHUTDOWN_FILE)
        self._files.write_atomically(path, text.encode("ascii"), sync=True)

    def release(self) -> None:
        """Let another process have it."""
        if self._lock is not None:
            self._lock.release()

    def meta_properties(self) -> MetaProperties | None:
        """Whose directory it is, or None if it is new or offline.

        Raises:
            LogDirectoryError: the file is damaged.
        """
        if not self.is_online:
            return None
        try:
            return read_meta_properties(self._files, self.path)
        except OSError as error:
            self.fail(f"cannot read meta.properties in the log directory {self.path}: {error}")
            return None

    def claim(self, node_id: int, cluster_id: str, directory_id: str) -> None:
        """Mark a new directory as this broker's, or make sure that an old one is.

        Raises:
            LogDirectoryError: it belongs to another broker or another cluster.
        """
        found = self.meta_properties()
        if not self.is_online:
            return
        if found is None:
            try:
                write_meta_properties(
                    self._files,
                    self.path,
                    node_id=node_id,
                    cluster_id=cluster_id,
                    directory_id=directory_id,
                )
            except OSError as error:
                self.fail(f"cannot write to the log directory {self.path}: {error}")
            return
        if found.node_id is not None and found.node_id != node_id:
            raise LogDirectoryError(
                f"the log directory {self.path} is of broker {found.node_id}, not {node_id}: set "
                "broker.id to its own, or log.dirs to another directory."
            )
        if found.cluster_id is not None and found.cluster_id != cluster_id:
            raise LogDirectoryError(
                f"the log directory {self.path} is of cluster {found.cluster_id}, not "
                f"{cluster_id}: name the metadata store of its own cluster, or set log.dirs to "
                "another directory."
            )

    def contents(self) -> DirectoryContents:
        """The folders in it."""
        partitions = []
        pending_deletion = []
        futures = []
        for name in self._files.list_directory(self.path):
            topic_partition = TopicPartition.from_folder_name(name)
            if topic_partition is not None:
                if topic_partition.topic != KRAFT_TOPIC and self._files.is_directory(
                    self._in(name)
                ):
                    partitions.append(topic_partition)
            elif name.endswith(DELETE_SUFFIX) and self._files.is_directory(self._in(name)):
                pending_deletion.append(self._in(name))
            elif (moving := future_partition(name)) is not None and self._files.is_directory(
                self._in(name)
            ):
                futures.append((moving, self._in(name)))
            elif name.endswith(IGNORED_SUFFIXES):
                logger.warning("ignoring %s: not the log of a partition", self._in(name))
        return DirectoryContents(partitions, pending_deletion, futures)

    def holds(self, path: str) -> bool:
        """Whether a path is the directory's own, or of something in it."""
        return path == self.path or path.startswith(os.path.join(self.path, ""))

    def folder_of(self, topic_partition: TopicPartition) -> str:
        """The folder of a partition."""
        return self._in(topic_partition.folder_name)

    def deleted_folder_of(self, topic_partition: TopicPartition, unique: str) -> str:
        """The name that a partition's folder gets when its log is deleted.

        Args:
            unique: distinguishes it from earlier topics of the name.
        """
        suffix = f"-{topic_partition.partition}.{unique}{DELETE_SUFFIX}"
        return self._in(topic_partition.topic[: FOLDER_NAME_MAX - len(suffix)] + suffix)

    def stray_folder_of(self, topic_partition: TopicPartition, unique: str) -> str:
        """The name that a partition's folder gets when its topic does not exist."""
        suffix = f"-{topic_partition.partition}.{unique}{STRAY_SUFFIX}"
        return self._in(topic_partition.topic[: FOLDER_NAME_MAX - len(suffix)] + suffix)

    def future_folder_of(self, topic_partition: TopicPartition, unique: str) -> str:
        """The folder of a future log (Kafka's logFutureDirName)."""
        return self._in(future_folder_name(topic_partition, unique))

    # --- checkpoints -------------------------------------------------------------------

    def logs_in(self, name: str) -> Mapping[TopicPartition, Log]:
        """The logs that a checkpoint file has entries of: only replicas have high watermarks."""
        if name == HIGH_WATERMARKS_FILE or not self.futures:
            return self.logs
        return {**self.logs, **self.futures}

    def kept_entries(self, name: str) -> dict[TopicPartition, int]:
        """What a checkpoint file says of logs that are not open yet: it is to go on saying so."""
        written = self.written.get(name, {})
        return {each: written[each] for each in self.unrecovered if each in written}

    def read_checkpoints(self) -> None:
        """Fill `written`. A file that is damaged counts as empty, as in Kafka.

        Then logs are recovered from their beginning, start where their first segment does, and
        high watermarks rise again.
        """
        for name in CHECKPOINT_FILES:
            try:
                self.written[name] = read_offsets(self._files, self._in(name))
            except CheckpointError as error:
                logger.warning("ignoring a corrupt checkpoint file: %s", error)
                self.written[name] = {}

    def read_cleaned_offsets(self) -> Mapping[TopicPartition, int] | None:
        """Up to where each log was compacted; None if the checkpoint is damaged."""
        try:
            return read_offsets(self._files, self._in(CLEANER_OFFSETS_FILE))
        except CheckpointError:
            return None

    def offset(self, name: str, topic_partition: TopicPartition) -> int:
        """The entry of a partition in a checkpoint; 0 if there is none."""
        return self.written[name].get(topic_partition, 0)

    def write_checkpoint(
        self, name: str, offsets: Mapping[TopicPartition, int], serial: int
    ) -> None:
        """Replace one of the checkpoint files, and wait for the disk; any thread may do so.

        Args:
            name: of the file.
            offsets: its entries.
            serial: larger for what is newer, which is never replaced by what is older.
        """
        with self._checkpoint_lock:
            if serial > self._serials.get(name, -1):
                write_offsets(self._files, self._in(name), offsets)
                self.written[name] = offsets
                self._serials[name] = serial

    def remove_checkpoint(self, name: str, serial: int) -> None:
        """Remove one of the checkpoint files durably.

        Raises:
            OSError: it cannot be removed.
        """
        with self._checkpoint_lock:
            self._files.remove(self._in(name))
            self._files.sync_directory(self.path)
            self.written[name] = {}
            self._serials[name] = serial

    def _in(self, name: str) -> str:
        return os.path.join(self.path, name)


def future_folder_name(topic_partition: TopicPartition, unique: str) -> str:
    """The name of a future log's folder (Kafka's logFutureDirName)."""
    return f"{topic_partition.folder_name}.{unique}{FUTURE_SUFFIX}"


def future_partition(name: str) -> TopicPartition | None:
    """The partition of a future log's folder; None where it is no such name."""
    if not name.endswith(FUTURE_SUFFIX):
        return None
    folder, _, unique = name.removesuffix(FUTURE_SUFFIX).rpartition(".")
    return TopicPartition.from_folder_name(folder) if unique else None
