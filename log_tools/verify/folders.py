"""The folders that verification and repair are given: whole data folders, or one partition's."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ...common.topic_partition import TopicPartition
from ...storage.checkpoint.checkpoint_file import CheckpointError, read_offsets
from ...storage.file_names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSETS_FILE,
    HIGH_WATERMARKS_FILE,
    LOCK_FILE,
    LOG_START_OFFSETS_FILE,
    META_PROPERTIES_FILE,
    RECOVERY_POINTS_FILE,
)
from ...storage.io.files import Files
from ...storage.io.read_only_files import READ_ONLY_FILES, keep_brokers_out
from .finding import Finding, FindingKind, unusable

CHECKPOINT_FILES = (
    RECOVERY_POINTS_FILE,
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    CLEANER_OFFSETS_FILE,
)


class PartitionFolder(NamedTuple):
    """A partition's folder, and what the checkpoints beside it say of it."""

    path: str
    topic_partition: TopicPartition
    offsets: dict[str, int]
    """By checkpoint file."""


def list_folders(files: Files, path: str) -> list[TopicPartition]:
    """The partitions that have a folder in a data folder, by name and number.

    Raises:
        OSError: it cannot be read.
    """
    found = (
        TopicPartition.from_folder_name(name)
        for name in files.list_directory(path)
        if files.is_directory(os.path.join(path, name))
    )
    return sorted(each for each in found if each is not None)


def is_partition_folder(files: Files, path: str) -> bool:
    """Whether a folder is one partition's, not a whole data folder.

    Raises:
        OSError: it cannot be read.
    """
    name = os.path.basename(os.path.abspath(path))
    return (
        TopicPartition.from_folder_name(name) is not None
        and not files.exists(os.path.join(path, META_PROPERTIES_FILE))
        and not list_folders(files, path)
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
