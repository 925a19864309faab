"""Repairing the root of a data folder: checkpoints and the mark of a clean shutdown."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from ...common.topic_partition import TopicPartition
from ...storage.checkpoint.checkpoint_file import CheckpointError, read_offsets, write_offsets
from ...storage.file_names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSETS_FILE,
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
)
from ...storage.io.files import Files
from ..verify.data_folder import (
    CHECKPOINT_FILES,
    Ends,
    Offsets,
    OwnerCheck,
    PartitionFolder,
    check_clean_shutdown,
    check_offsets,
    list_folders,
)
from ..verify.finding import Finding, without_path

DAMAGED_SUFFIX = ".damaged"

WITHOUT = {
    RECOVERY_POINTS_FILE: "without it the next start reads every log through",
    HIGH_WATERMARKS_FILE: "without it high watermarks are agreed on anew",
    LOG_START_OFFSETS_FILE: "without it logs begin where their first segment does, so that "
    "deleted records of it can be read again",
    CLEANER_OFFSETS_FILE: "without it compaction begins at the front of each log",
}
"""What a broker does that has no such file."""


class RepairAction(StrEnum):
    """What is done to a file."""

    CUT = "cut"
    """Bytes behind the last whole batch go; a copy of them stays beside the log."""
    REBUILD = "rebuild"
    """Rebuilt from the batches."""
    CLAMP = "clamp"
    """Offsets from behind the end of a log become that end."""
    REMOVE = "remove"
    """A broker makes it again, or does without."""
    LEAVE = "leave"
    """Nothing is done: it is valid, or what it should be cannot be known."""


class RepairStep(NamedTuple):
    """One file that was, or would be, repaired."""

    action: RepairAction
    path: str
    message: str
    """What is done and why, as a sentence."""


class RootRepair:
    """The root of one data folder.

    Args:
        path: the data folder.
        dry_run: whether nothing may be changed.
    """

    def __init__(self, files: Files, path: str, *, dry_run: bool) -> None:
        self._files = files
        self._path = path
        self._dry_run = dry_run
        self._checkpoints: dict[str, Offsets] = {}
        self._damaged: dict[str, str] = {}
        for name in CHECKPOINT_FILES:
            try:
                self._checkpoints[name] = read_offsets(files, os.path.join(path, name))
            except CheckpointError as error:
                self._damaged[name] = without_path(str(error), os.path.join(path, name))

    def folders(self) -> list[PartitionFolder]:
        """The partitions, with what the checkpoints say of them."""
        return [
            PartitionFolder(
                os.path.join(self._path, each.folder_name),
                each,
                {
                    name: offsets[each]
                    for name, offsets in self._checkpoints.items()
                    if each in offsets
                },
            )
            for each in list_folders(self._files, self._path)
        ]

    def steps(self, ends: Mapping[TopicPartition, Ends]) -> Iterator[RepairStep]:
        """Repair the files, now that it is known where each log begins and ends."""
        for finding in OwnerCheck().root(self._files, self._path):
            if finding.is_damage:
                message = (
                    f"{finding.message}; whose folder it is cannot be known: write the file by "
                    "hand, with version=1, node.id, cluster.id and directory.id"
                )
                yield RepairStep(RepairAction.LEAVE, finding.path, message)
        mark = os.path.join(self._path, CLEAN_SHUTDOWN_FILE)
        for finding in check_clean_shutdown(self._files, mark):
            if finding.is_damage:
                yield self._remove(finding, "the next start recovers the logs")
        for name, problem in self._damaged.items():
            yield self._put_aside(name, problem)
        for name, offsets in self._checkpoints.items():
            yield from self._clamp(name, offsets, dict(ends))

    def _remove(self, finding: Finding, consequence: str) -> RepairStep:
        if not self._dry_run:
            self._files.remove(finding.path)
            self._files.sync_directory(self._path)
        return RepairStep(RepairAction.REMOVE, finding.path, f"{finding.message}; {consequence}")

    def _put_aside(self, name: str, problem: str) -> RepairStep:
        path = os.path.join(self._path, name)
        if not self._dry_run:
            self._files.rename(path, path + DAMAGED_SUFFIX)
            self._files.sync_directory(self._path)
        message = f"{problem}; it becomes {name}{DAMAGED_SUFFIX}: {WITHOUT[name]}"
        return RepairStep(RepairAction.REMOVE, path, message)

    def _clamp(
        self, name: str, offsets: Offsets, ends: dict[TopicPartition, Ends]
    ) -> Iterator[RepairStep]:
        path = os.path.join(self._path, name)
        findings = check_offsets(path, offsets, ends, may_be_behind=False)
        wrong = [finding.message for finding in findings if finding.is_damage]
        if not wrong:
            return
        clamped = {
            each: min(max(offset, 0), ends[each].end_offset) if each in ends else offset
            for each, offset in offsets.items()
        }
        if not self._dry_run:
            write_offsets(self._files, path, clamped)
        for message in wrong:
            yield RepairStep(RepairAction.CLAMP, path, message)
