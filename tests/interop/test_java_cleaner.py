"""Our cleaner and Apache Kafka's, given the same logs: they leave the same batches."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.compacted_life import RETENTION_MS, STEPS, CompactedLife

from odradek.protocol.records import RecordBatch, iter_batches, iter_records
from odradek.runtime.steps import run_at_once
from odradek.storage.cleaner.cleaning_plan import CleanerSettings
from odradek.storage.cleaner.log_cleaner_manager import Cleaning
from odradek.storage.cleaner.record_filter import delete_horizon_of
from odradek.storage.index.transaction_index import AbortedTxn, TransactionIndex
from odradek.storage.io.files import REAL_FILES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

LIVES = 40

Content = dict[str, tuple[list[Any], list[AbortedTxn]]]
"""By the name of a segment, its batches and its aborted transactions."""


class Job(NamedTuple):
    """A log as it was, how it was cleaned, and what our cleaner made of it."""

    arguments: tuple[Any, ...]
    """What Kafka's cleaner is told, the folder first."""
    end_offset: int
    content: Content


class RecordedLife(CompactedLife):
    """A life of which each cleaning is to be done again by another."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.jobs: list[Job] = []
        self.rounds = 0

    def run_round(self, settings: CleanerSettings) -> Cleaning | None:
        candidate = run_at_once(self.manager.find_filthiest())
        if candidate is None:
            return None
        self.flush_files()
        self.rounds += 1
        before = Path(self.folder).with_name(f"before-{self.rounds}") / "table-0"
        shutil.copytree(self.folder, before)
        cleaning = super().run_round(settings)
        assert cleaning is not None
        self.flush_files()
        base_offsets = {segment.base_offset for segment in cleaning.round.plan.segments}
        # From within a segment Kafka takes transactions that ended before for open aborted ones,
        # and keeps older values than it has to.
        if candidate.first_dirty_offset in base_offsets:
            arguments = (
                before,
                candidate.first_dirty_offset,
                candidate.first_uncleanable_offset,
                cleaning.round.keys_max,
                self.clock.now_ms(),
                self.config.segment_bytes,
                RETENTION_MS,
                self.config.index_interval_bytes,
            )
            content = content_of(Path(self.folder))
            self.jobs.append(Job(arguments, cleaning.round.end_offset, content))
        return cleaning

    def flush_files(self) -> None:
        self.log.flush_to_disk()
        for segment in self.log.segments:
            segment.flush_indexes()


def content_of(folder: Path) -> Content:
    """Everything that both cleaners decide on; how well they compress is their own."""
    return {
        path.stem: (
            [facts_of(batch) for batch in iter_batches(path.read_bytes())],
            TransactionIndex(REAL_FILES, str(path.with_suffix(".txnindex")), 0).read_all(),
        )
        for path in folder.glob("*.log")
    }


def facts_of(batch: RecordBatch) -> tuple[Any, ...]:
    return (
        batch.base_offset,
        batch.last_offset,
        batch.attributes,
        batch.partition_leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.max_timestamp,
        delete_horizon_of(batch),
        list(iter_records(batch)),
    )


def test_both_cleaners_leave_the_same_batches(java: Callable[..., str], tmp_path: Path) -> None:
    jobs: list[Job] = []
    for seed in range(LIVES):
        life = RecordedLife(tmp_path / str(seed), seed)
        for _ in range(STEPS):
            life.step()
        jobs += life.jobs
    lines = "".join(" ".join(map(str, job.arguments)) + "\n" for job in jobs)

    printed = java("odradek.interop.CleanLogs", input=lines)

    assert len(jobs) > 2 * LIVES
    assert [int(line) for line in printed.split()] == [job.end_offset for job in jobs]
    for job in jobs:
        assert content_of(job.arguments[0]) == job.content, job.arguments
