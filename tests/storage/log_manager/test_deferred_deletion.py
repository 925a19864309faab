"""What is deleted gets another name at once, and goes after `file.delete.delay.ms`."""

from __future__ import annotations

import errno
import re

import pytest

from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.storage import LogConfig, LogManager, TopicPartition
from odradek.storage.log_manager.deferred_deletion import DeferredDeletion, delete_due
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
FOLDER = "/data"
ORDERS = TopicPartition("orders", 0)
DELAY_MS = 60_000
BATCH_BYTES = len(build_batch([(b"key", b"value", NOW_MS, [])]))


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def start(files: MemoryFiles, clock: ManualClock):
    """Start a log manager; all are let go of at the end."""
    started = []

    def start_one() -> LogManager:
        manager = LogManager([FOLDER], clock=clock, files=files)
        started.append(manager)
        manager.load_logs()
        return manager

    yield start_one
    for manager in started:
        manager.abandon()


@pytest.fixture
def remove_due(clock: ManualClock):
    """Remove what is due by now, as the broker's timer does; gives what failed."""
    return lambda manager: delete_due(manager.deletions.take_due(clock.monotonic_ms()))


def append(log, count: int = 1) -> None:
    for _ in range(count):
        batch = build_batch([(b"key", b"value", NOW_MS, [])])
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()


def test_old_segments_are_renamed_at_once_and_removed_later(start, files, clock, remove_due):
    manager = start()
    log = manager.get_or_create_log(ORDERS, config=LogConfig(segment_bytes=BATCH_BYTES))
    append(log, 3)
    slice_of_old = log.read(0, 1000).records
    log.advance_log_start_offset(2)
    assert log.delete_old_segments(NOW_MS, 3) == 2
    names = files.list_directory(f"{FOLDER}/orders-0")
    for offset in (0, 1):
        for suffix in (".log", ".index", ".timeindex"):
            assert f"{offset:020d}{suffix}.deleted" in names
            assert f"{offset:020d}{suffix}" not in names
    assert f"{1:020d}.snapshot.deleted" in names
    clock.advance(DELAY_MS - 1)
    assert remove_due(manager) == []
    assert files.list_directory(f"{FOLDER}/orders-0") == names
    clock.advance(1)
    assert remove_due(manager) == []
    names = files.list_directory(f"{FOLDER}/orders-0")
    assert not any(name.endswith(".deleted") for name in names)
    assert f"{2:020d}.log" in names
    assert len(slice_of_old.read()) == BATCH_BYTES


def test_a_deleted_log_has_another_name_at_once_and_goes_later(start, files, clock, remove_due):
    manager = start()
    log = manager.get_or_create_log(ORDERS, bytes(16), LogConfig(file_delete_delay_ms=500))
    append(log)
    manager.delete_log(ORDERS)
    (name,) = [each for each in files.list_directory(FOLDER) if each.startswith("orders")]
    assert re.fullmatch(r"orders-0\.[0-9a-f]{32}-delete", name)
    new = manager.get_or_create_log(ORDERS, bytes(16))
    assert new.log_end_offset == 0
    clock.advance(500)
    remove_due(manager)
    folders = [each for each in files.list_directory(FOLDER) if each.startswith("orders")]
    assert folders == ["orders-0"]


def test_the_name_of_a_deleted_folder_is_no_longer_than_a_name_can_be(start, files):
    longest = TopicPartition("t" * 249, 99_999)
    manager = start()
    manager.get_or_create_log(longest)
    manager.delete_log(longest)
    (name,) = [each for each in files.list_directory(FOLDER) if each.startswith("ttt")]
    assert len(name) == 255
    assert re.fullmatch(r"t+-99999\.[0-9a-f]{32}-delete", name)


def test_a_start_finishes_what_was_to_be_removed(start, files, remove_due):
    manager = start()
    log = manager.get_or_create_log(ORDERS, config=LogConfig(segment_bytes=BATCH_BYTES))
    append(log, 2)
    log.advance_log_start_offset(1)
    log.delete_old_segments(NOW_MS, 2)
    append(manager.get_or_create_log(TopicPartition("gone", 3)))
    manager.delete_log(TopicPartition("gone", 3))
    manager.abandon()
    manager = start()
    assert set(manager.logs) == {ORDERS}
    assert remove_due(manager) == []
    assert not any(name.endswith("-delete") for name in files.list_directory(FOLDER))
    names = files.list_directory(f"{FOLDER}/orders-0")
    assert not any(name.endswith(".deleted") for name in names)


def test_what_cannot_be_removed_is_reported_and_the_rest_goes(files):
    for name in ("a", "b", "c"):
        files.write_atomically(f"/{name}", b"x")
    files.fail(errno.EIO, "/b")
    deletions = DeferredDeletion()
    deletions.add_files(files, ["/a", "/b", "/c"], 10)
    failures = delete_due(deletions.take_due(10))
    assert [(path, error.errno) for path, error in failures] == [("/b", errno.EIO)]
    assert not files.exists("/a")
    assert not files.exists("/c")


def test_the_earliest_deletion_is_reported():
    deletions = DeferredDeletion()
    reported = []
    deletions.on_earlier = reported.append
    files = MemoryFiles()
    for moment in (50, 70, 20):
        deletions.add_files(files, [f"/at-{moment}"], moment)
    assert reported == [50, 20]
    assert [entry.path for entry in deletions.take_due(60)] == ["/at-20", "/at-50"]
    assert deletions.next_due_ms == 70
    assert deletions.take_due(69) == []


def test_what_could_not_be_tried_is_kept(files: MemoryFiles) -> None:
    deletions = DeferredDeletion()
    files.write_atomically("/one", b"1")
    deletions.add_files(files, ["/one"], due_ms=5)
    deletions.add_files(files, ["/later"], due_ms=9)
    deletions.put_back(deletions.take_due(5))
    assert len(deletions) == 2
    assert deletions.next_due_ms == 5
    assert delete_due(deletions.take_due(5)) == []
    assert not files.exists("/one")
