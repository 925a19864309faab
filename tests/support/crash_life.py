"""A broker's storage that lives, loses its power at a random moment, and is looked at.

One seed is one life: three logs under a `LogManager` on a file system in memory, random
work on them, a crash at a random operation of the file system (or a kill, or a proper stop),
a recovery that may itself be interrupted, and the checks of `crash_checks`.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from contextlib import suppress

from odradek.log_tools.verify.log_verify import Verification, VerifyOptions
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import LogConfig, LogManager, StorageError, TopicPartition
from odradek.storage.cleaner.cleaning_plan import CleanerSettings
from odradek.storage.cleaner.log_cleaner_manager import LogCleanerManager
from odradek.storage.cleaner.throttler import CleanerThrottler, CleaningCancelled
from odradek.storage.log_manager.deferred_deletion import delete_due
from odradek.tools.simulation.disks.memory_files import MemoryFiles, PowerCut

from .crash_checks import check_consistent, check_recovered, read_batches
from .crash_partition import CrashPartition

DATA_DIR = "/data"
CLUSTER_ID = "crash-tests"
SMALL = LogConfig(segment_bytes=1500, index_interval_bytes=200)
CONFIGS = {
    "deleted": SMALL._replace(retention_bytes=6000),
    "indexed": SMALL._replace(segment_index_bytes=48, file_delete_delay_ms=0),
    "followed": SMALL._replace(segment_ms=60),
    "compacted": SMALL._replace(
        cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, delete_retention_ms=50
    ),
}
CLEANER = CleanerSettings(dedupe_buffer_bytes=24 * 1024, io_buffer_bytes=1024)
ROUNDS = 3
STEPS_PER_ROUND = 14
OPERATIONS_PER_ROUND = 160
"""About as many operations of the file system as a round has."""

CUT_IN_RECOVERY = 0.3


class CrashLife:
    """One life.

    Args:
        seed: decides everything.
        trace: told of every step, for one who replays a seed.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.random = random.Random(seed)
        self.files = MemoryFiles()
        self.files.make_directory(DATA_DIR)
        self.files.sync_directory("/")
        self.clock = ManualClock(1_700_000_000_000)
        self.trace = trace or (lambda line: None)
        self.partitions = [
            CrashPartition(TopicPartition(topic, 0), config, self.random, self._new_topic_id())
            for topic, config in CONFIGS.items()
        ]
        self.manager: LogManager
        self._open()
        self._adopt_logs()

    def run(self) -> None:
        """Live through every round."""
        for _ in range(ROUNDS):
            self.files.cut_power_after(self.random.randint(1, OPERATIONS_PER_ROUND))
            try:
                for _ in range(STEPS_PER_ROUND):
                    self._step()
                self.trace("stop")
                self._stop()
            except PowerCut as cut:
                self.trace(f"power cut {cut}")
            self._crash_and_recover()
        self._verify()

    # --- what happens ------------------------------------------------------------------

    def _step(self) -> None:
        partition = self.random.choice(self.partitions)
        names = list(STEPS)
        name = self.random.choices(names, [STEPS[each] for each in names])[0]
        self.trace(f"{self.files.operations}: {name} {partition}")
        getattr(self, name)(partition)
        self.clock.advance(self.random.randint(0, 20))

    def append(self, partition: CrashPartition) -> None:
        if partition.topic_partition.topic == "followed":
            partition.follow()
        else:
            partition.stage_some()
            partition.flush_appends()

    def lead(self, partition: CrashPartition) -> None:
        partition.lead_in_a_new_epoch()

    def roll(self, partition: CrashPartition) -> None:
        partition.log.roll(self.clock.now_ms())

    def flush(self, partition: CrashPartition) -> None:
        """The work of a thread, and sometimes an append while it runs."""
        flush = partition.log.start_flush()
        if flush is None:
            return
        offset = partition.log.log_end_offset
        if self.random.random() < 0.3:
            self.append(partition)
        flush.run()
        if self.random.random() < 0.3:
            self.append(partition)
            if self.random.random() < 0.3:
                self.roll(partition)
        partition.log.finish_flush(flush)
        partition.promised(offset)

    def checkpoint(self, _: CrashPartition) -> None:
        if self.random.random() < 0.5:
            self._run(run_at_once(self.manager.prepare_recovery_points()))
        write = run_at_once(self.manager.prepare_start_offsets())
        starts = {each.topic_partition: each.log.log_start_offset for each in self.partitions}
        self._run(write)
        for each in self.partitions:
            each.start_min = starts[each.topic_partition]
        self._run(run_at_once(self.manager.prepare_recovery_points()))

    def checkpoint_high_watermarks(self, _: CrashPartition) -> None:
        self.manager.checkpoint_high_watermarks(
            {each.topic_partition: each.log.log_end_offset for each in self.partitions}.get
        )

    def delete_old_segments(self, _: CrashPartition) -> None:
        for each in self.partitions:
            if each.config.retention_bytes >= 0:
                each.start_max = each.log.log_end_offset
        run_at_once(
            self.manager.delete_old_segments(
                lambda topic_partition: self.manager.logs[topic_partition].log_end_offset
            )
        )
        for each in self.partitions:
            each.may_start_at(each.log.log_start_offset)

    def delete_records(self, partition: CrashPartition) -> None:
        log = partition.log
        offset = self.random.randint(log.log_start_offset, log.log_end_offset)
        partition.may_start_at(offset)
        log.advance_log_start_offset(offset)

    def truncate(self, partition: CrashPartition) -> None:
        log = partition.log
        lowest = max(log.log_start_offset, min(partition.cleaned_end, log.log_end_offset))
        offset = self.random.randint(lowest, log.log_end_offset)
        partition.truncate(offset)
        partition.is_cutting = True
        log.truncate_to(offset)
        partition.is_cutting = False
        partition.resume_producers()

    def compact(self, _: CrashPartition) -> None:
        """A round of the cleaner, and sometimes other work while its thread runs."""
        candidate = run_at_once(self.cleaner.find_filthiest())
        if candidate is None:
            return
        flush = candidate.log.start_flush(closed_segments_only=True)
        if flush is not None:
            flush.run()
            candidate.log.finish_flush(flush)
        self._run(run_at_once(self.manager.prepare_recovery_points()))
        cleaning = self.cleaner.begin(
            candidate, CLEANER, CleanerThrottler(self.clock, lambda _: None)
        )
        partition = next(each for each in self.partitions if each.log is candidate.log)
        cleaned_end = candidate.first_uncleanable_offset
        partition.cleaned_end = max(partition.cleaned_end, cleaned_end)
        try:
            for group in cleaning.round.prepare():
                cleaned = cleaning.round.clean(group)
                if self.random.random() < 0.2:
                    self.random.choice((self.append, self.truncate, self.roll))(partition)
                self.cleaner.swap_in(cleaning, cleaned)
            cleaning.round.sync_names()
        except CleaningCancelled:
            return
        self.cleaner.finished(cleaning)
        write = self.cleaner.checkpoints.prepare_write()
        if write is not None:
            self.cleaner.checkpoints.write_done(write())

    def truncate_fully(self, partition: CrashPartition) -> None:
        if partition.topic_partition.topic == "followed":
            offset = self.random.randint(0, partition.log.log_end_offset + 5)
            partition.truncate_fully(offset)
            partition.is_cutting = True
            partition.log.truncate_fully_and_start_at(offset)
            partition.is_cutting = False
            partition.resume_producers()

    def recreate(self, partition: CrashPartition) -> None:
        """The topic is deleted, and another of its name is made."""
        self.flush(partition)
        partition.begin_anew(self._new_topic_id())
        self.manager.delete_log(partition.topic_partition)
        self._adopt_logs()

    def remove_deleted(self, _: CrashPartition) -> None:
        """The time has come for files that were renamed to be removed."""
        self.clock.advance(60_000)
        assert not delete_due(self.manager.deletions.take_due(self.clock.monotonic_ms()))

    def fill_disk(self, partition: CrashPartition) -> None:
        """The disk is full, so that appends are refused, and then it has room again."""
        self.files.room_bytes = self.random.randint(0, 200)
        try:
            self.append(partition)
        except StorageError:
            partition.refused()
        finally:
            self.files.room_bytes = None

    def break_disk(self, partition: CrashPartition) -> None:
        """The disk fails, and so the broker does not go on with it."""
        self.files.fail(errno.EIO, DATA_DIR, after=self.random.randint(0, 12))
        with suppress(StorageError, OSError):
            self.append(partition)
            self.flush(partition)
            self.roll(partition)
        self.files.faults.clear()
        raise PowerCut("after the disk had failed")

    def restart(self, _: CrashPartition) -> None:
        self._stop()
        self._open()
        self._adopt_logs()

    def _run(self, write: Callable[[], None] | None) -> None:
        if write is not None:
            write()

    # --- stopping and starting ---------------------------------------------------------

    def _stop(self) -> None:
        self.manager.checkpoint_high_watermarks(
            {each.topic_partition: each.log.log_end_offset for each in self.partitions}.get
        )
        self.manager.close()
        for each in self.partitions:
            each.promised(each.end_offset)

    def _open(self) -> None:
        self.manager = LogManager(
            [DATA_DIR],
            clock=self.clock,
            default_config=SMALL,
            files=self.files,
            rng=self.random,
            recovery_threads=1,
        )
        self.manager.directories.claim(1, CLUSTER_ID, self.random)
        self.manager.load_logs(dict(CONFIGS))
        assert [each.failure for each in self.manager.directories] == [None]
        self.cleaner = LogCleanerManager(
            self.manager.logs,
            lambda: [DATA_DIR],
            lambda topic_partition: self.manager.logs[topic_partition].last_stable_offset,
            self.clock,
            self.files,
            self.manager.noted_recovery_point,
        )

    def _adopt_logs(self) -> None:
        for each in self.partitions:
            found = self.manager.get_log(each.topic_partition)
            if found is not None and found.topic_id == each.deleted_topic_id is not None:
                assert each.flushed_end == 0, "a deleted log is back in place of a flushed one"
                self.manager.delete_log(each.topic_partition)
            each.log = self.manager.get_or_create_log(
                each.topic_partition, each.topic_id, each.config
            )

    def _crash_and_recover(self) -> None:
        for each in self.partitions:
            each.start_seen = max(each.start_seen, each.log.log_start_offset)
        lost_power = self.random.random() < 0.75
        self.files = (
            self.files.after_power_cut(self.random) if lost_power else self.files.after_kill()
        )
        self.trace("power lost" if lost_power else "killed")
        while self.random.random() < CUT_IN_RECOVERY:
            self.files.cut_power_after(self.random.randint(0, 60))
            try:
                self._open()
            except PowerCut as cut:
                self.trace(f"power cut in recovery {cut}")
            lost_power = True
            self.files = self.files.after_power_cut(self.random)
        self._open()
        self._adopt_logs()
        for each in self.partitions:
            self.trace(f"check {each}")
            check_recovered(each, each.log, lost_power=lost_power)
            each.may_start_at(each.log.log_start_offset)

    def _verify(self) -> None:
        """`odradek log verify` has nothing to say of what is left.

        It is asked of single folders, and so cannot know what was deleted or compacted.
        """
        whole = [
            each.log.directory
            for each in self.partitions
            if each.log.log_start_offset == 0 and not each.config.compacts
        ]
        self._stop()
        for folder in whole:
            findings = Verification([folder], VerifyOptions(), files=self.files).findings()
            damage = [finding for finding in findings if finding.is_damage]
            assert not damage, f"verify finds {damage}"

    def _new_topic_id(self) -> bytes:
        return self.random.randbytes(16)


STEPS = {
    "append": 12,
    "lead": 1,
    "roll": 1,
    "flush": 4,
    "checkpoint": 1.5,
    "checkpoint_high_watermarks": 0.5,
    "delete_old_segments": 1,
    "delete_records": 1,
    "compact": 2,
    "truncate_fully": 0.5,
    "recreate": 0.5,
    "remove_deleted": 0.5,
    "fill_disk": 1,
    "break_disk": 0.2,
    "truncate": 1,
    "restart": 0.4,
}
"""What may happen, and how often against the others."""

__all__ = ["CrashLife", "check_consistent", "read_batches"]
