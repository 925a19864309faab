"""Repairing data folders: torn tails are cut, and what can be made from batches is rebuilt.

No whole batch is ever touched. A damaged one with whole ones behind it stays where it is: a
broker that recovered the log would cut there and lose what follows, so it is left to the
user to copy those out first. What is cut is kept beside the log.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ...storage.file_names import CLEANER_OFFSETS_FILE, CUT_SUFFIX, LOG_START_OFFSETS_FILE
from ...storage.io.files import REAL_FILES, Files
from ...storage.recovery.cut_files import copy_tail, is_only_zeros
from ..verify.data_folder import (
    Ends,
    IdentityCheck,
    PartitionFolder,
    describe_folder,
    is_partition_folder,
    recovery_point_of,
)
from ..verify.finding import Finding, FindingKind
from ..verify.partition_verification import PartitionOptions, PartitionVerification, TornTail
from .rebuild import PartitionRebuild, RebuildPlan
from .root_repair import RepairAction, RepairStep, RootRepair

LEFT_ALONE = {
    FindingKind.BATCH: "whole batches follow, so nothing is cut; without a clean shutdown the "
    "next start may cut the log here: copy what follows first",
    FindingKind.OFFSETS: "which offset is right cannot be known",
    FindingKind.RECORDS: "what the records were cannot be known",
    FindingKind.PARTITION_METADATA: "the topic id cannot be known from the batches: take it from "
    "another partition of the topic",
    FindingKind.DIRECTORY: "which of the two is right cannot be known: move one away",
    FindingKind.UNREADABLE: "the operating system refuses to read it",
}
"""Why nothing is done about it."""


class RepairOptions(NamedTuple):
    """How folders are repaired."""

    dry_run: bool = False
    """Only report what would be done."""


class Repair:
    """One repair of some folders, whose locks the caller holds.

    Args:
        paths: data folders, or folders of partitions.
        options: how.
        on_bytes: called with the number of bytes of logs that were read.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: RepairOptions,
        *,
        files: Files = REAL_FILES,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self._paths = paths
        self._options = options
        self._files = files
        self._on_bytes = on_bytes
        self._identity = IdentityCheck(files)

    def steps(self) -> Iterator[RepairStep]:
        """Repair, and yield each step when it is done (or would be).

        Raises:
            OSError: the disk fails; what was done is whole, and may be done again.
        """
        for path in self._paths:
            if is_partition_folder(self._files, path):
                folder, _ = describe_folder(self._files, path)
                yield from map(_left_alone, self._identity.partition(folder))
                yield from _PartitionRepair(self, folder).steps()
            else:
                yield from self._root(path)

    def _root(self, path: str) -> Iterator[RepairStep]:
        root = RootRepair(self._files, path, dry_run=self._options.dry_run)
        ends = {}
        for folder in root.folders():
            yield from map(_left_alone, self._identity.partition(folder))
            partition = _PartitionRepair(self, folder)
            yield from partition.steps()
            if partition.ends is not None:
                ends[folder.topic_partition] = partition.ends
        yield from root.steps(ends)

    @property
    def files(self) -> Files:
        """The file system."""
        return self._files

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be changed."""
        return self._options.dry_run

    def read(self, size: int) -> None:
        """So many bytes of a log have been read."""
        if self._on_bytes is not None:
            self._on_bytes(size)


class _PartitionRepair:
    """One partition's folder: it is verified, cut, verified again, and its side files made."""

    def __init__(self, repair: Repair, folder: PartitionFolder) -> None:
        self._repair = repair
        self._files = repair.files
        self._folder = folder
        self.ends: Ends | None = None
        """Where the repaired log begins and ends."""

    def steps(self) -> Iterator[RepairStep]:
        options = PartitionOptions(
            log_start_offset=self._folder.offsets.get(LOG_START_OFFSETS_FILE, 0),
            is_compacted=CLEANER_OFFSETS_FILE in self._folder.offsets,
            recovery_point=recovery_point_of(self._files, self._folder),
        )
        findings, verification = self._verify(options, self._repair.read)
        tail = verification.torn_tail
        if tail is not None:
            yield self._cut(tail)
            # what the side files say of the bytes that went is wrong now
            options = options._replace(ends={tail.path: tail.position})
            findings, verification = self._verify(options, None)
        plan = RebuildPlan()
        planned = [self._plan(plan, finding, verification) for finding in findings]
        if plan and not self._repair.dry_run:
            PartitionRebuild(
                self._files,
                self._folder.path,
                self._folder.topic_partition,
                plan,
                log_start_offset=options.log_start_offset,
            ).run()
        yield from (step for step in planned if step is not None)
        first = verification.base_offsets[0] if verification.base_offsets else 0
        self.ends = Ends(first, max(verification.log_end_offset, first))

    def _verify(
        self, options: PartitionOptions, on_bytes: Callable[[int], None] | None
    ) -> tuple[list[Finding], PartitionVerification]:
        verification = PartitionVerification(
            self._files, self._folder.path, self._folder.topic_partition, options, on_bytes
        )
        return list(verification.findings()), verification

    def _cut(self, tail: TornTail) -> RepairStep:
        """Cut what no whole batch follows, keeping a copy unless it is nothing but zeros."""
        end = tail.position + tail.size
        copy_path = f"{tail.path}.{tail.position}{CUT_SUFFIX}"
        is_worth_a_copy = not is_only_zeros(self._files, tail.path, tail.position, end)
        message = f"the last {tail.size} bytes, from {tail.position} on, are no whole batch"
        if is_worth_a_copy:
            message += f"; they are kept in {os.path.basename(copy_path)}"
        if not self._repair.dry_run:
            if is_worth_a_copy:
                copy_tail(self._files, tail.path, tail.position, end, copy_path)
            file = self._files.open(tail.path)
            file.truncate(tail.position)
            file.sync()
        return RepairStep(RepairAction.CUT, tail.path, message)

    def _plan(
        self, plan: RebuildPlan, finding: Finding, verification: PartitionVerification
    ) -> RepairStep | None:
        """Enter into the plan what a finding asks for; None if it is there, or is nothing."""
        kind, path = finding.kind, finding.path
        if kind in LEFT_ALONE:
            return _left_alone(finding)
        if kind is FindingKind.EPOCHS and not plan.epochs:
            plan.epochs = True
            return RepairStep(RepairAction.REBUILD, path, finding.message)
        if kind is FindingKind.SNAPSHOT:
            assert finding.offset is not None
            return self._plan_snapshot(plan, finding, finding.offset, verification)
        if kind in (FindingKind.OFFSET_INDEX, FindingKind.TIME_INDEX):
            return _plan_segment(plan.indexes, finding)
        if kind is FindingKind.TRANSACTION_INDEX:
            return _plan_segment(plan.transactions, finding)
        return None

    def _plan_snapshot(
        self,
        plan: RebuildPlan,
        finding: Finding,
        offset: int,
        verification: PartitionVerification,
    ) -> RepairStep | None:
        if offset in plan.snapshots:
            return None
        plan.snapshots.add(offset)
        is_needed = offset in verification.base_offsets or offset == verification.log_end_offset
        action = RepairAction.REBUILD if is_needed else RepairAction.REMOVE
        return RepairStep(action, finding.path, finding.message)


def _left_alone(finding: Finding) -> RepairStep:
    message = f"{finding.message}; {LEFT_ALONE[finding.kind]}"
    return RepairStep(RepairAction.LEAVE, finding.path, message)


def _plan_segment(base_offsets: set[int], finding: Finding) -> RepairStep | None:
    base_offset = int(os.path.splitext(os.path.basename(finding.path))[0])
    if base_offset in base_offsets:
        return None
    base_offsets.add(base_offset)
    return RepairStep(RepairAction.REBUILD, finding.path, finding.message)
