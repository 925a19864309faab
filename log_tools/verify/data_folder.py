"""Data folders: their locks and partitions, and checks of the files at their root."""

from __future__ import annotations

import json
import os.path
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...storage.checkpoint.checkpoint_file import CheckpointError, read_offsets
from ...storage.checkpoint.meta_properties import MetaProperties, read_meta_properties
from ...storage.checkpoint.partition_metadata import read_topic_id
from ...storage.errors import LogDirectoryError
from ...storage.file_names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSETS_FILE,
    HIGH_WATERMARKS_FILE,
    LOCK_FILE,
    LOG_START_OFFSETS_FILE,
    LOG_SUFFIX,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    RECOVERY_POINTS_FILE,
)
from ...storage.io.files import Files
from ...storage.io.read_only_files import READ_ONLY_FILES, keep_brokers_out
from ...storage.log_manager.log_directory import KRAFT_TOPIC
from .finding import Finding, FindingKind, unusable

CHECKPOINT_FILES = (
    RECOVERY_POINTS_FILE,
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    CLEANER_OFFSETS_FILE,
)


Offsets = dict[TopicPartition, int]


class PartitionFolder(NamedTuple):
    """A partition's folder, and what the checkpoints beside it say of it."""

    path: str
    topic_partition: TopicPartition
    offsets: dict[str, int]
    """By checkpoint file."""


def list_folders(files: Files, path: str) -> list[TopicPartition]:
    """The partitions that have a folder in a data folder, by name and number."""
    found = (
        TopicPartition.from_folder_name(name)
        for name in files.list_directory(path)
        if files.is_directory(os.path.join(path, name))
    )
    return sorted(each for each in found if each is not None)


def is_partition_folder(files: Files, path: str) -> bool:
    """Whether a folder is one partition's, not a whole data folder."""
    name = os.path.basename(os.path.abspath(path))
    return (
        TopicPartition.from_folder_name(name) is not None
        and not files.exists(os.path.join(path, META_PROPERTIES_FILE))
        and not list_folders(files, path)
    )


def is_log_folder(files: Files, path: str) -> bool:
    """Whether a folder is, or was, a broker's: a data folder, or a partition's with its log.

    One whose `meta.properties` was lost still has checkpoints, or partitions with logs.
    """
    kept = (META_PROPERTIES_FILE, *CHECKPOINT_FILES)
    if any(files.exists(os.path.join(path, name)) for name in kept):
        return True
    folders = [path] if is_partition_folder(files, path) else []
    folders += [os.path.join(path, each.folder_name) for each in list_folders(files, path)]
    return any(
        name.endswith(LOG_SUFFIX) or name == PARTITION_METADATA_FILE
        for folder in folders
        for name in files.list_directory(folder)
    )


def hold_locks(paths: Sequence[str], stack: ExitStack, *, exclusive: bool) -> None:
    """Keep brokers away from data folders, or from those that partition folders lie in.

    Args:
        paths: the folders.
        stack: lets go of the locks at its end.
        exclusive: also keep others away who only look.

    Raises:
        LogDirectoryError: a broker is running on one.
        OSError: a lock cannot be taken.
    """
    held = set()
    for path in paths:
        folder = os.path.abspath(path)
        if is_partition_folder(READ_ONLY_FILES, folder):
            folder = os.path.dirname(folder)
            if not READ_ONLY_FILES.exists(os.path.join(folder, LOCK_FILE)):
                continue  # a copy of one partition, which no broker runs on
        if folder in held:
            continue
        held.add(folder)
        try:
            lock = keep_brokers_out(os.path.join(folder, LOCK_FILE), exclusive=exclusive)
        except FileNotFoundError:
            continue  # no broker has ever run on it
        stack.callback(lock.release)


def describe_folder(files: Files, path: str) -> tuple[PartitionFolder, list[Finding]]:
    """A partition's folder by itself, and what the checkpoints beside it say, if there are any."""
    full = os.path.abspath(path)
    topic_partition = TopicPartition.from_folder_name(os.path.basename(full))
    assert topic_partition is not None
    offsets: dict[str, int] = {}
    findings = []
    for name in CHECKPOINT_FILES:
        beside = os.path.join(os.path.dirname(full), name)
        try:
            found = read_offsets(files, beside)
        except (CheckpointError, OSError) as error:
            findings.append(unusable(FindingKind.CHECKPOINT, beside, error))
            continue
        if topic_partition in found:
            offsets[name] = found[topic_partition]
    return PartitionFolder(path, topic_partition, offsets), findings


def recovery_point_of(files: Files, folder: PartitionFolder) -> int | None:
    """Where the next start begins to read a partition's log; None after a clean shutdown.

    A folder that stands by itself, or in one that no broker has used, counts as closed.
    """
    root = os.path.dirname(os.path.abspath(folder.path))
    if files.exists(os.path.join(root, CLEAN_SHUTDOWN_FILE)) or not files.exists(
        os.path.join(root, META_PROPERTIES_FILE)
    ):
        return None
    return folder.offsets.get(RECOVERY_POINTS_FILE, 0)


class Ends(NamedTuple):
    """Where a log was found to begin and end."""

    start_offset: int
    end_offset: int


class OwnerCheck:
    """All folders of a command line belong to one broker."""

    def __init__(self) -> None:
        self._first: tuple[MetaProperties, str] | None = None

    def root(self, files: Files, root: str) -> Iterator[Finding]:
        """Look at the `meta.properties` of another folder."""
        path = os.path.join(root, META_PROPERTIES_FILE)
        try:
            found = read_meta_properties(files, root)
        except (LogDirectoryError, KafkaError, OSError) as error:
            yield unusable(FindingKind.META_PROPERTIES, path, error)
            return
        if found is None:
            message = "it is missing: no broker has used this folder, or the file is lost"
            yield Finding(FindingKind.NOTE, path, message)
            return
        if self._first is None:
            self._first = found, path
        other, where = self._first
        if (found.cluster_id, found.node_id) != (other.cluster_id, other.node_id):
            yield Finding(
                FindingKind.META_PROPERTIES,
                path,
                f"the folder is of broker {found.node_id} in cluster {found.cluster_id}, but "
                f"{where} says broker {other.node_id} in cluster {other.cluster_id}",
            )


class IdentityCheck:
    """Each partition is in one folder, and those of a topic have one topic id."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._seen: dict[TopicPartition, str] = {}
        self._topic_ids: dict[str, tuple[bytes, str]] = {}

    def partition(self, folder: PartitionFolder) -> Iterator[Finding]:
        """Look at the `partition.metadata` of another folder."""
        topic = folder.topic_partition.topic
        other = self._seen.setdefault(folder.topic_partition, folder.path)
        if other != folder.path:
            message = f"{folder.topic_partition} lies in {other} too: no broker starts with both"
            yield Finding(FindingKind.DIRECTORY, folder.path, message)
        if topic == KRAFT_TOPIC:
            return
        path = os.path.join(folder.path, PARTITION_METADATA_FILE)
        if not self._files.exists(path):
            return
        try:
            topic_id = read_topic_id(self._files, folder.path)
        except (LogDirectoryError, KafkaError, OSError, ValueError) as error:
            yield unusable(FindingKind.PARTITION_METADATA, path, error)
            return
        if topic_id is None:
            message = "it tells no topic id: it should have the lines 'version: 0' and 'topic_id: '"
            yield Finding(FindingKind.PARTITION_METADATA, path, message)
            return
        known, where = self._topic_ids.setdefault(topic, (topic_id, path))
        if known != topic_id:
            message = f"its topic id is not the one in {where}, of the same topic"
            yield Finding(FindingKind.PARTITION_METADATA, path, message)


def check_clean_shutdown(files: Files, path: str) -> Iterator[Finding]:
    """Whether the mark of a clean shutdown is there, and is what a broker writes."""
    if not files.exists(path):
        message = "it is missing: the last broker was not stopped properly; the next start recovers"
        yield Finding(FindingKind.NOTE, path, message)
        return
    try:
        fields = json.loads(files.read_bytes(path))
    except OSError as error:
        yield unusable(FindingKind.CLEAN_SHUTDOWN, path, error)
        return
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or fields.get("version") != 0:
        message = 'the mark of a clean shutdown is not JSON such as {"version":0,"brokerEpoch":-1}'
        yield Finding(FindingKind.CLEAN_SHUTDOWN, path, message)


def check_offsets(
    path: str, offsets: Offsets, ends: dict[TopicPartition, Ends], *, may_be_behind: bool
) -> Iterator[Finding]:
    """Whether a checkpoint's offsets lie in the logs that they are of.

    Args:
        path: of the checkpoint.
        offsets: what it says.
        ends: where each log was found to begin and end.
        may_be_behind: whether logs may have grown since.
    """
    for topic_partition, offset in offsets.items():
        found = ends.get(topic_partition)
        if found is None:
            message = f"{topic_partition} has no folder here, or none that could be read"
            yield Finding(FindingKind.NOTE, path, message)
        elif offset < 0 or (offset > found.end_offset and not may_be_behind):
            yield Finding(
                FindingKind.CHECKPOINT,
                path,
                f"it has offset {offset} of {topic_partition}, whose log ends at "
                f"{found.end_offset}",
                offset,
            )
