"""One of a broker's log directories: its lock, its marks, its checkpoints."""

from __future__ import annotations

import os.path
from collections.abc import Mapping

from .checkpoint_file import read_offsets, write_offsets
from .errors import LogDirectoryError
from .files import FileLock, Files
from .log import DELETE_SUFFIX
from .meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from .topic_partition import TopicPartition

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_TEXT = b'{"version":0,"brokerEpoch":-1}'
RECOVERY_POINTS_FILE = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS_FILE = "replication-offset-checkpoint"
LOG_START_OFFSETS_FILE = "log-start-offset-checkpoint"

KRAFT_TOPIC = "__cluster_metadata"
"""Kafka's controllers keep their own log beside the topics'; it is none of ours."""


class LogDirectory:
    """A directory taken by this process alone, from `__init__` until `release`.

    Args:
        files: the file system.
        path: made if it is not there.

    Raises:
        LogDirectoryError: another process has it, or it is no directory one can write.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        try:
            files.make_directory(path)
            lock = files.lock(self._in(LOCK_FILE))
        except OSError as error:
            raise LogDirectoryError(f"cannot use the log directory {path}: {error}") from error
        if lock is None:
            raise LogDirectoryError(
                f"another broker is using the log directory {path}: stop it, or choose another"
            )
        self._lock: FileLock = lock
        self.was_clean = files.exists(self._in(CLEAN_SHUTDOWN_FILE))
        """Whether the last broker to use it closed everything properly."""

    def mark_in_use(self) -> None:
        """From now on a crash has to be reckoned with."""
        self._files.remove(self._in(CLEAN_SHUTDOWN_FILE))

    def mark_clean(self) -> None:
        """Everything in it has been closed: the next start may take it as it is."""
        self._files.write_atomically(self._in(CLEAN_SHUTDOWN_FILE), CLEAN_SHUTDOWN_TEXT, sync=True)

    def release(self) -> None:
        """Let another process have it."""
        self._lock.release()

    def meta_properties(self) -> MetaProperties | None:
        """Whose directory it is, or None if it is new. Raises `LogDirectoryError`."""
        return read_meta_properties(self._files, self.path)

    def claim(self, node_id: int, cluster_id: str, directory_id: str) -> None:
        """Mark a new directory as this broker's, or make sure that an old one is.

        Raises:
            LogDirectoryError: it belongs to another broker or another cluster.
            OSError: the disk fails.
        """
        found = self.meta_properties()
        if found is None:
            write_meta_properties(
                self._files,
                self.path,
                node_id=node_id,
                cluster_id=cluster_id,
                directory_id=directory_id,
            )
            return
        if found.node_id is not None and found.node_id != node_id:
            raise LogDirectoryError(
                f"the log directory {self.path} is of broker {found.node_id}, not {node_id}"
            )
        if found.cluster_id is not None and found.cluster_id != cluster_id:
            raise LogDirectoryError(
                f"the log directory {self.path} is of cluster {found.cluster_id}, not {cluster_id}"
            )

    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a folder; folders on their way out are removed.

        Raises:
            OSError: the disk fails.
        """
        found = []
        for name in self._files.list_directory(self.path):
            path = self._in(name)
            if not self._files.is_directory(path):
                continue
            if name.endswith(DELETE_SUFFIX):
                self._files.remove_tree(path)
                continue
            topic_partition = TopicPartition.from_folder_name(name)
            if topic_partition is not None and topic_partition.topic != KRAFT_TOPIC:
                found.append(topic_partition)
        return found

    def folder_of(self, topic_partition: TopicPartition) -> str:
        """The folder of a partition."""
        return self._in(topic_partition.folder_name)

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """One of the checkpoint files. Raises `CheckpointError` and `OSError`."""
        return read_offsets(self._files, self._in(name))

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace one of the checkpoint files. Raises `OSError`."""
        write_offsets(self._files, self._in(name), offsets)

    def _in(self, name: str) -> str:
        return os.path.join(self.path, name)
