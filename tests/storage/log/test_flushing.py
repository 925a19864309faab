"""When batches are on the disk: at a roll, by `flush.messages`, by `flush.ms`, at the end."""

from __future__ import annotations

import errno

import pytest

from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import LogConfig, LogManager, StorageError, TopicPartition
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
FOLDER = "/data"
ORDERS = TopicPartition("orders", 0)
BATCH_BYTES = len(build_batch([(b"key", b"value", NOW_MS, [])]))


class SyncedFiles(MemoryFiles):
    """Notes what is synced and read, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []
        self.read: list[str] = []

    def operate(self, operation: str, path: str) -> None:
        super().operate(operation, path)
        if operation in ("sync", "read"):
            noted = self.synced if operation == "sync" else self.read
            noted.append(path.removeprefix(f"{FOLDER}/orders-0/"))


@pytest.fixture
def files() -> SyncedFiles:
    return SyncedFiles()


@pytest.fixture
def manager(files: SyncedFiles):
    manager = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=files)
    manager.load_logs()
    yield manager
    manager.abandon()


@pytest.fixture
def make_log(manager: LogManager):
    """The log of orders-0 with these settings: `make_log(flush_messages=1)`."""
    return lambda **fields: manager.get_or_create_log(ORDERS, bytes(16), LogConfig(**fields))


def append(log, count: int = 1) -> None:
    for _ in range(count):
        batch = build_batch([(b"key", b"value", NOW_MS, [])])
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()


def name(offset: int, suffix: str = ".log") -> str:
    return f"{offset:020d}{suffix}"


def test_a_roll_asks_for_a_flush_of_what_was_closed(manager, make_log, files) -> None:
    requested = []
    manager.on_rolled = lambda: requested.append(True)
    log = make_log(segment_bytes=2 * BATCH_BYTES)
    append(log, 2)
    assert requested == []
    append(log)
    assert requested == [True]
    assert manager.take_rolled() is log
    assert manager.take_rolled() is None
    files.synced.clear()
    flush = log.start_flush(closed_segments_only=True)
    flush.run()
    log.finish_flush(flush, NOW_MS)
    assert log.recovery_point == 2
    assert {name(0), name(0, ".index"), name(0, ".timeindex")} <= set(files.synced)
    assert name(2) not in files.synced


def test_a_log_that_is_gone_by_then_needs_no_flush(manager, make_log) -> None:
    log = make_log(segment_bytes=BATCH_BYTES)
    append(log, 2)
    flush = log.start_flush(closed_segments_only=True)
    manager.delete_log(ORDERS)
    assert manager.take_rolled() is None
    flush.run()


def test_after_a_crash_only_what_was_not_flushed_is_read(manager, make_log, files) -> None:
    log = make_log(segment_bytes=2 * BATCH_BYTES)
    append(log, 9)
    log.flush_to_disk()
    manager.checkpoint_offsets()
    manager.abandon()
    files.read.clear()
    again = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=files)
    again.load_logs()
    assert again.logs[ORDERS].log_end_offset == 9
    assert not {name(0), name(2), name(4)} & set(files.read)
    assert name(8) in files.read
    again.abandon()


@pytest.mark.parametrize(("flush_messages", "syncs"), [(1, 3), (2, 1), (4, 0)])
def test_appends_are_synced_every_so_many_messages(make_log, files, flush_messages, syncs) -> None:
    log = make_log(flush_messages=flush_messages)
    for _ in range(3):
        append(log)
    assert files.synced.count(name(0)) == syncs
    assert log.recovery_point == {1: 3, 2: 2, 4: 0}[flush_messages]


def test_nobody_sees_an_append_that_could_not_be_synced(manager, make_log, files) -> None:
    log = make_log(flush_messages=1)
    append(log)
    files.fail(errno.EIO, operations={"sync"})
    with pytest.raises(StorageError, match="could not sync orders-0"):
        append(log)
    assert (log.log_end_offset, log.size, log.recovery_point) == (1, BATCH_BYTES, 1)
    assert [failed.path for failed in manager.take_failed_directories()] == [FOLDER]


def test_an_append_over_several_segments_is_synced_as_a_whole(make_log, files) -> None:
    log = make_log(flush_messages=1, segment_bytes=BATCH_BYTES)
    append(log, 3)
    assert {name(0), name(1), name(2)} <= set(files.synced)
    assert log.log_end_offset == 3
    assert log.recovery_point == 0  # the indexes of what was closed are not synced yet
    log.flush_to_disk()
    assert log.recovery_point == 3


def test_what_has_waited_for_flush_ms_is_to_be_flushed(files) -> None:
    clock = ManualClock(NOW_MS)
    manager = LogManager([FOLDER], clock=clock, files=files)
    manager.load_logs()
    log = manager.get_or_create_log(ORDERS, config=LogConfig(flush_ms=1000))
    idle = manager.get_or_create_log(TopicPartition("idle", 0), config=LogConfig(flush_ms=1000))
    append(log)
    clock.advance(999)
    assert run_at_once(manager.logs_to_flush()) == []
    clock.advance(1)
    assert run_at_once(manager.logs_to_flush()) == [log]
    flush = log.start_flush()
    flush.run()
    log.finish_flush(flush, clock.monotonic_ms())
    append(log)
    clock.advance(999)
    assert run_at_once(manager.logs_to_flush()) == []
    clock.advance(1)
    assert run_at_once(manager.logs_to_flush()) == [log]
    assert idle.recovery_point == 0
    manager.abandon()


def test_the_topic_id_is_on_the_disk_with_the_first_flush(make_log, files) -> None:
    log = make_log()
    append(log)
    files.synced.clear()
    log.flush_to_disk()
    assert "partition.metadata" in files.synced
    assert FOLDER in files.synced  # the folder's own name
    append(log)
    files.synced.clear()
    log.flush_to_disk()
    assert "partition.metadata" not in files.synced


def test_a_clean_end_syncs_the_indexes_of_a_segment_flushed_without_them(
    manager, make_log, files
) -> None:
    log = make_log(flush_messages=1)
    append(log)
    files.synced.clear()
    manager.close()
    assert {name(0, ".index"), name(0, ".timeindex")} <= set(files.synced)


def test_a_clean_end_touches_no_log_that_nothing_came_to(manager, make_log, files) -> None:
    append(make_log())
    manager.close()
    again = LogManager([FOLDER], clock=ManualClock(NOW_MS), files=files)
    again.load_logs()
    files.synced.clear()
    again.close()
    assert [path for path in files.synced if path.startswith("0000")] == []
