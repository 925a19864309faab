"""Verifying data folders: every partition in them, and the files at their root.

Nothing is changed. A broker that ran on a folder meanwhile would make it look damaged, so
its lock should be held while it is read (`data_folder.hold_locks`).
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

from ...common.topic_partition import TopicPartition
from ...storage.checkpoint.checkpoint_file import CheckpointError, read_offsets
from ...storage.file_names import CLEAN_SHUTDOWN_FILE, CLEANER_OFFSETS_FILE, LOG_START_OFFSETS_FILE
from ...storage.io.files import Files
from ...storage.io.read_only_files import READ_ONLY_FILES
from .data_folder import (
    CHECKPOINT_FILES,
    Ends,
    IdentityCheck,
    Offsets,
    OwnerCheck,
    PartitionFolder,
    check_clean_shutdown,
    check_offsets,
    describe_folder,
    is_partition_folder,
    list_folders,
    recovery_point_of,
)
from .finding import Finding, FindingKind, unusable
from .partition_verification import PartitionOptions, PartitionVerification, list_segments


class VerifyOptions(NamedTuple):
    """How folders are verified."""

    deep: bool = False
    """Decode every record, instead of only counting them."""
    live: bool = False
    """A broker may be running: what it has not finished writing is no damage."""


class Verification:
    """One reading of some folders: `findings`, and before it `total_bytes`.

    Args:
        paths: data folders, or folders of partitions.
        options: how.
        on_bytes: called with the number of bytes of logs that were read.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: VerifyOptions,
        *,
        files: Files = READ_ONLY_FILES,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self._files = files
        self._options = options
        self._on_bytes = on_bytes or (lambda size: None)
        self._roots = [path for path in paths if not is_partition_folder(files, path)]
        self._lone = [path for path in paths if is_partition_folder(files, path)]
        self._identity = IdentityCheck(files)
        self._owner = OwnerCheck()
        self.partitions_count = 0

    def total_bytes(self) -> int:
        """How many bytes of logs there are to be read."""
        folders = [
            os.path.join(root, each.folder_name)
            for root in self._roots
            for each in list_folders(self._files, root)
        ]
        return sum(
            self._files.size(os.path.join(folder, f"{base_offset:020d}.log"))
            for folder in (*folders, *self._lone)
            for base_offset in list_segments(self._files, folder)
        )

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong, folder by folder.

        What the operating system refuses to read is a finding, too.
        """
        for root in self._roots:
            yield from self._root(root)
        for path in self._lone:
            folder, findings = describe_folder(self._files, path)
            yield from findings
            yield from self._partition(folder)

    def _root(self, root: str) -> Iterator[Finding]:
        yield from self._owner.root(self._files, root)
        if not self._options.live:
            path = os.path.join(root, CLEAN_SHUTDOWN_FILE)
            yield from check_clean_shutdown(self._files, path)
        checkpoints: dict[str, Offsets] = {}
        for name in CHECKPOINT_FILES:
            try:
                checkpoints[name] = read_offsets(self._files, os.path.join(root, name))
            except (CheckpointError, OSError) as error:
                yield unusable(FindingKind.CHECKPOINT, os.path.join(root, name), error)
        ends: dict[TopicPartition, Ends] = {}
        for topic_partition in list_folders(self._files, root):
            folder = PartitionFolder(
                os.path.join(root, topic_partition.folder_name),
                topic_partition,
                {
                    name: offsets[topic_partition]
                    for name, offsets in checkpoints.items()
                    if topic_partition in offsets
                },
            )
            found = yield from self._partition(folder)
            if found is not None:
                ends[topic_partition] = found
        for name, offsets in checkpoints.items():
            path = os.path.join(root, name)
            yield from check_offsets(path, offsets, ends, may_be_behind=self._options.live)

    def _partition(self, folder: PartitionFolder) -> Generator[Finding, None, Ends | None]:
        """The findings of a partition; returns where its log begins and ends, if known."""
        self.partitions_count += 1
        yield from self._identity.partition(folder)
        start_offset = folder.offsets.get(LOG_START_OFFSETS_FILE, 0)
        options = PartitionOptions(
            deep=self._options.deep,
            live=self._options.live,
            log_start_offset=start_offset,
            is_compacted=CLEANER_OFFSETS_FILE in folder.offsets,
            recovery_point=recovery_point_of(self._files, folder),
        )
        try:
            verification = PartitionVerification(
                self._files, folder.path, folder.topic_partition, options, self._on_bytes
            )
            yield from verification.findings()
        except OSError as error:
            if not (self._options.live and isinstance(error, FileNotFoundError)):
                yield unusable(FindingKind.UNREADABLE, error.filename or folder.path, error)
            return None
        first = verification.base_offsets[0] if verification.base_offsets else start_offset
        return Ends(first, max(verification.log_end_offset, first))
