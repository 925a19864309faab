"""Logs that a start leaves to be recovered later: nothing known of them is lost meanwhile."""

from __future__ import annotations

import errno

import pytest

from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.storage import LogManager, TopicPartition
from odradek.storage.checkpoint.checkpoint_file import read_offsets
from odradek.storage.errors import StorageError
from odradek.storage.file_names import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
)
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
FOLDER = "/data"
COUNT = 40
LOW, HIGH = TopicPartition("t", 3), TopicPartition("t", 7)
TOPIC_ID = bytes(range(16))
NAMES = (RECOVERY_POINTS_FILE, LOG_START_OFFSETS_FILE, HIGH_WATERMARKS_FILE)


def manager_of(files: MemoryFiles) -> LogManager:
    return LogManager([FOLDER], clock=ManualClock(NOW_MS), files=files)


def append(manager: LogManager, partition: TopicPartition, count: int = 1) -> None:
    log = manager.get_or_create_log(partition, TOPIC_ID)
    for _ in range(count):
        batch = build_batch([(b"key", b"value", NOW_MS, [])])
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()


@pytest.fixture
def files() -> MemoryFiles:
    """A folder after a crash: partition `n` has records from `n - 3` to `n`."""
    files = MemoryFiles()
    manager = manager_of(files)
    manager.load_logs()
    for number in range(COUNT):
        topic_partition = TopicPartition("t", number)
        append(manager, topic_partition, number)
        manager.logs[topic_partition].advance_log_start_offset(max(number - 3, 0))
    manager.checkpoint_high_watermarks(lambda each: each.partition)
    manager.close()
    files.remove(f"{FOLDER}/{CLEAN_SHUTDOWN_FILE}")
    return files


def checkpoints(files: MemoryFiles) -> dict[str, dict[TopicPartition, int]]:
    """What the files say now."""
    return {name: read_offsets(files, f"{FOLDER}/{name}") for name in NAMES}


def recover_some(manager: LogManager, *first: TopicPartition) -> list[TopicPartition]:
    work = manager.prepare_recovery(first)
    assert work is not None
    recovered = work()
    manager.take_up_recovered(recovered)
    return list(recovered)


def recover_all(manager: LogManager) -> list[TopicPartition]:
    order: list[TopicPartition] = []
    while manager.unrecovered:
        order += recover_some(manager, HIGH)
    assert manager.prepare_recovery() is None
    return order


def test_all_are_there_in_the_end_and_those_that_are_waited_for_come_first(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    assert not manager.logs
    assert len(manager.unrecovered) == COUNT
    assert {each.topic_id for each in manager.found_logs().values()} == {TOPIC_ID}
    order = recover_all(manager)
    assert order[0] == HIGH
    ranges = {
        each.partition: (log.log_start_offset, log.log_end_offset)
        for each, log in manager.logs.items()
    }
    assert ranges == {number: (max(number - 3, 0), number) for number in range(COUNT)}
    assert not manager.is_loading
    manager.close()
    assert files.exists(f"{FOLDER}/{CLEAN_SHUTDOWN_FILE}")


def test_what_has_time_is_recovered_at_once(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=1000)
    assert len(manager.logs) == COUNT
    assert not manager.unrecovered
    manager.close()


def test_a_folder_that_was_closed_properly_leaves_nothing(files) -> None:
    manager = manager_of(files)
    manager.load_logs()
    manager.close()
    again = manager_of(files)
    again.load_logs(recovery_ms=0)
    assert len(again.logs) == COUNT
    assert not again.unrecovered
    again.close()


@pytest.mark.parametrize("recovered", [False, True])
def test_checkpoints_go_on_saying_what_they_said(files, recovered: bool) -> None:
    before = checkpoints(files)
    assert before[LOG_START_OFFSETS_FILE][HIGH] == 4
    assert before[HIGH_WATERMARKS_FILE][HIGH] == 7
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    if recovered:
        recover_some(manager, LOW)
        assert HIGH in manager.unrecovered
    append(manager, TopicPartition("another", 0))
    manager.checkpoint_offsets()
    manager.checkpoint_high_watermarks(
        lambda each: each.partition if each in manager.logs else None
    )
    manager.abandon()
    after = checkpoints(files)
    for name in (LOG_START_OFFSETS_FILE, HIGH_WATERMARKS_FILE):
        assert {each: after[name].get(each) for each in before[name]} == before[name]
    assert after[RECOVERY_POINTS_FILE][HIGH] == before[RECOVERY_POINTS_FILE][HIGH]


def test_a_stop_before_the_end_is_no_clean_one(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    recover_some(manager)
    manager.close()
    assert not files.exists(f"{FOLDER}/{CLEAN_SHUTDOWN_FILE}")
    again = manager_of(files)
    again.load_logs()
    assert {each.partition: log.log_end_offset for each, log in again.logs.items()} == {
        number: number for number in range(COUNT)
    }
    assert again.logs[HIGH].log_start_offset == 4
    again.close()


def test_nobody_gets_another_log_in_its_place(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    with pytest.raises(StorageError, match="not recovered yet"):
        manager.get_or_create_log(HIGH, TOPIC_ID)
    assert manager.has_log(HIGH)
    assert manager.get_log(HIGH) is None
    manager.abandon()


def test_one_that_is_deleted_goes_when_it_is_recovered(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    manager.delete_log(HIGH)
    assert HIGH in manager.unrecovered
    recover_all(manager)
    assert not manager.has_log(HIGH)
    assert not files.exists(f"{FOLDER}/{HIGH.folder_name}")
    append(manager, HIGH)
    assert manager.logs[HIGH].log_end_offset == 1
    manager.close()


def test_one_of_a_deleted_topic_is_set_aside_before(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    path = manager.set_aside(HIGH)
    assert files.exists(path)
    assert not manager.has_log(HIGH)
    assert HIGH not in recover_all(manager)
    manager.close()


def test_a_directory_that_fails_takes_them_with_it(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    work = manager.prepare_recovery()
    assert work is not None
    manager.disk_failed(FOLDER, OSError(errno.EIO, "broken"))
    (failed,) = manager.take_failed_directories()
    assert set(failed.partitions) == {TopicPartition("t", number) for number in range(COUNT)}
    assert not manager.unrecovered
    manager.take_up_recovered(work())
    assert not manager.logs
    manager.abandon()


def test_one_that_cannot_be_opened_takes_its_directory_offline(files) -> None:
    manager = manager_of(files)
    manager.load_logs(recovery_ms=0)
    files.fail(errno.EIO, under=f"{FOLDER}/{HIGH.folder_name}")
    recover_some(manager, HIGH)
    (failed,) = manager.take_failed_directories()
    assert HIGH in failed.partitions
    assert "cannot load the log" in failed.why
    assert not manager.logs
    manager.abandon()
