"""A crash or a fault at any operation of a cleaning leaves what was there before, or after."""

from __future__ import annotations

import errno
import random
from contextlib import suppress
from unittest.mock import patch

import pytest
from support.compaction import clean, make_manager, read_committed, read_records
from support.transactions import marker

from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.storage import AppendOrigin, Log, LogConfig, StorageError, TopicPartition, load_log
from odradek.tools.simulation.disks.memory_files import MemoryFiles, PowerCut

TABLE = TopicPartition("table", 0)
FOLDER = "/data/table-0"
NOW_MS = 1_700_000_000_000
ONE_GROUP = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=0.0,
    index_interval_bytes=100,
    segment_bytes=100_000,
)
SEVERAL_GROUPS = ONE_GROUP._replace(segment_bytes=900)


class Owner:
    """Remembers whether the log said that its disk failed; deletes at once."""

    def __init__(self) -> None:
        self.failures = 0

    def delete_later(self, files, paths, delay_ms) -> None:
        for path in paths:
            files.remove(path)

    def disk_failed(self, path, error) -> None:
        self.failures += 1

    def rolled(self, topic_partition) -> None:
        pass

    def jitter(self) -> float:
        return 0.0


def make_log(config: LogConfig, files: MemoryFiles) -> Log:
    """Six closed segments with values overwritten, deleted, aborted and committed."""
    source = random.Random(config.segment_bytes)
    files.make_directory("/data")
    files.sync_directory("/")
    log = load_log(FOLDER, TABLE, config, files=files, now_ms=NOW_MS)
    files.sync_directory("/data")
    log.owner = Owner()
    sequence = 0
    for number in range(6):
        for part in range(3):
            records = [
                (b"key-%d" % source.randrange(6), source.choice([b"v" * 30, None]), NOW_MS, [])
                for _ in range(4)
            ]
            header = {}
            if part == 1:
                header = {
                    "producer_id": 5,
                    "producer_epoch": 0,
                    "base_sequence": sequence,
                    "transactional": True,
                }
                sequence += len(records)
            batch = build_batch(records, compression=Compression.LZ4, **header)
            log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        end = marker(5, commit=number % 2 == 0, timestamp=NOW_MS)
        log.append_as_leader(end, leader_epoch=0, origin=AppendOrigin.COORDINATOR, now_ms=NOW_MS)
        log.flush_appends()
        log.high_watermark_moved(log.log_end_offset)
        log.roll(NOW_MS)
    log.flush_to_disk()
    return log


def load(config: LogConfig, files: MemoryFiles, recovery_point: int = 0) -> Log:
    log = load_log(FOLDER, TABLE, config, files=files, now_ms=NOW_MS, recovery_point=recovery_point)
    log.owner = Owner()
    log.high_watermark_moved(log.log_end_offset)
    return log


def outcomes(config: LogConfig) -> tuple[list[list], int, int]:
    """What may be there after each group, from none to all; the operations; the log's end."""
    files = MemoryFiles()
    log = make_log(config, files)
    clock = ManualClock(NOW_MS)
    before = files.operations
    clean(make_manager(log, clock, files=files), clock)
    operations = files.operations - before

    files = MemoryFiles()
    log = make_log(config, files)
    seen = [read_records(log)]
    manager = make_manager(log, clock, files=files)
    original = Log.replace_segments

    def replace_and_look(*arguments) -> None:
        original(*arguments)
        seen.append(read_records(log))

    with patch.object(Log, "replace_segments", replace_and_look):
        assert clean(manager, clock) is not None
    return seen, operations, log.log_end_offset


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(ONE_GROUP, id="one"),
        pytest.param(SEVERAL_GROUPS, id="several", marks=pytest.mark.slow),
    ],
)
def test_a_power_cut_at_any_moment_leaves_whole_groups_old_or_new(config: LogConfig) -> None:
    allowed, operations, end_offset = outcomes(config)
    assert len(allowed) == (2 if config is ONE_GROUP else len(allowed))
    found = set()
    for cut in range(operations):
        files = MemoryFiles()
        log = make_log(config, files)
        committed = read_committed(log)
        clock = ManualClock(NOW_MS)
        manager = make_manager(log, clock, files=files)
        files.cut_power_after(cut)
        with pytest.raises(PowerCut):
            clean(manager, clock)
        for seed in range(2):
            after = files.after_power_cut(random.Random(cut * 2 + seed))
            again = load(config, after, recovery_point=log.recovery_point)
            assert again.log_end_offset == end_offset
            records = read_records(again)
            assert records in allowed, f"cut after {cut} operations"
            found.add(allowed.index(records))
            assert {r.offset for r in read_committed(again)} <= {r.offset for r in committed}
            assert not [name for name in after.list_directory(FOLDER) if is_leftover(name)]
            clean(make_manager(again, clock, files=after), clock)
            assert read_records(again) == allowed[-1]
    assert {0, len(allowed) - 1} <= found


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_an_operation_that_fails_leaves_a_log_that_works_or_says_that_its_disk_failed(
    error: int,
) -> None:
    allowed, operations, end_offset = outcomes(ONE_GROUP)
    halfway = 0
    for position in range(operations):
        files = MemoryFiles()
        log = make_log(ONE_GROUP, files)
        clock = ManualClock(NOW_MS)
        manager = make_manager(log, clock, files=files)
        fault = files.fail(error, FOLDER, after=position, times=1)
        with suppress(OSError, StorageError):
            clean(manager, clock)
        files.faults.remove(fault)
        owner = log.owner
        assert isinstance(owner, Owner)
        if owner.failures:
            halfway += 1
            log = load(ONE_GROUP, files)
            assert log.log_end_offset == end_offset
        assert read_records(log) in allowed, f"failed at {position}"
        again = load(ONE_GROUP, files.after_kill())
        assert read_records(again) in allowed
        clean(make_manager(log, clock, files=files), clock)
        assert read_records(log) == allowed[-1]
    assert halfway > 3


def is_leftover(name: str) -> bool:
    return name.endswith((".cleaned", ".swap", ".deleted"))
