"""Several log directories: what fails at the start or later takes only its own logs away."""

from __future__ import annotations

import errno
import json
import random
from collections.abc import Callable

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import LogConfig, LogDirectoryError, LogManager, StorageError, TopicPartition
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
FIRST = "/disks/first"
SECOND = "/disks/second"
TOPIC_ID = bytes(range(16))
ORDERS = [TopicPartition("orders", number) for number in range(4)]

Start = Callable[..., LogManager]


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def start(files: MemoryFiles):
    """Start a log manager over both directories; all are let go of at the end."""
    started = []

    def start_one(*paths: str, **arguments) -> LogManager:
        arguments = {"clock": ManualClock(NOW_MS), "files": files, **arguments}
        manager = LogManager(paths or (FIRST, SECOND), **arguments)
        started.append(manager)
        manager.load_logs()
        return manager

    yield start_one
    for manager in started:
        manager.abandon()


@pytest.fixture
def stopped(start: Start) -> None:
    """Both directories hold two logs, closed properly."""
    manager = start()
    for topic_partition in ORDERS:
        append(manager.get_or_create_log(topic_partition, TOPIC_ID))
    manager.close()


def append(log, value: bytes = b"value") -> None:
    batch = build_batch([(b"key", value, NOW_MS, [])])
    log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()


def directory_of(manager: LogManager, log) -> str:
    return next(each.path for each in manager.directories if log.topic_partition in each.logs)


def logs_in(manager: LogManager, path: str) -> list:
    return [log for log in manager.logs.values() if directory_of(manager, log) == path]


# --- at the start ----------------------------------------------------------------------


@pytest.mark.parametrize("operations", [{"lock"}, {"list"}, {"remove"}])
@pytest.mark.usefixtures("stopped")
def test_a_directory_that_cannot_be_used_is_offline_and_the_other_loads(start, files, operations):
    files.fail(errno.EIO, SECOND, operations)
    manager = start()
    assert [each.is_online for each in manager.directories] == [True, False]
    assert len(manager.logs) == 2
    assert all(directory_of(manager, log) == FIRST for log in manager.logs.values())


@pytest.mark.usefixtures("stopped")
def test_a_log_that_cannot_be_read_takes_its_directory_offline(start, files):
    manager = start()
    lost = logs_in(manager, SECOND)[1].directory
    manager.close()
    files.fail(errno.EIO, lost, {"list"})
    manager = start()
    assert [each.is_online for each in manager.directories] == [True, False]
    assert {log.topic_partition for log in logs_in(manager, FIRST)} == set(manager.logs)
    assert lost in (list(manager.directories)[1].failure or "")


@pytest.mark.usefixtures("stopped")
def test_nothing_starts_without_a_directory(start, files):
    files.fail(errno.EROFS, "/disks", {"lock"})
    with pytest.raises(LogDirectoryError, match=r"no log directory is left.*first.*second"):
        start()


@pytest.mark.usefixtures("stopped")
def test_an_old_partition_is_not_made_anew_while_it_may_lie_in_a_directory_offline(start, files):
    files.fail(errno.EIO, SECOND, {"lock"})
    manager = start()
    missing = next(each for each in ORDERS if each not in manager.logs)
    with pytest.raises(StorageError, match="may lie in a directory that is offline") as refused:
        manager.get_or_create_log(missing, TOPIC_ID, is_new=False)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(StorageError, match="may lie in a directory that is offline"):
        manager.delete_log(missing)
    new = manager.get_or_create_log(TopicPartition("new", 0), TOPIC_ID)
    assert directory_of(manager, new) == FIRST


@pytest.mark.usefixtures("stopped")
def test_a_partition_in_two_directories_is_refused(start, files):
    name = ORDERS[0].folder_name
    for path in (FIRST, SECOND):
        files.make_directory(f"{path}/{name}")
    with pytest.raises(LogDirectoryError, match=f"{name} lies both in"):
        start()


def test_a_path_given_twice_is_one_directory(start):
    assert len(start(FIRST, FIRST).directories) == 1


def test_a_directory_that_cannot_be_marked_is_offline(start, files):
    manager = start()
    files.fail(errno.EROFS, SECOND)
    manager.directories.claim(1, "cluster", random.Random(1))
    assert [each.is_online for each in manager.directories] == [True, False]
    files.fail(errno.EROFS, FIRST)
    with pytest.raises(LogDirectoryError, match="no log directory is left"):
        manager.directories.claim(1, "cluster", random.Random(1))


# --- while it runs ---------------------------------------------------------------------


def fail_append(manager: LogManager, log) -> None:
    append(log)


def fail_read(manager: LogManager, log) -> None:
    log.close_files()
    log.read(0, 1000).records.read()


def fail_roll(manager: LogManager, log) -> None:
    log.roll(NOW_MS)


def fail_flush(manager: LogManager, log) -> None:
    log.flush_to_disk()


def fail_truncation(manager: LogManager, log) -> None:
    log.truncate_to(0)


@pytest.mark.parametrize(
    "fail",
    [fail_append, fail_read, fail_roll, fail_flush, fail_truncation],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.ENOENT])
def test_a_disk_that_fails_takes_its_directory_offline_and_no_other(start, files, fail, error):
    manager = start()
    for topic_partition in ORDERS:
        append(manager.get_or_create_log(topic_partition, TOPIC_ID))
    lost, *_ = mine = logs_in(manager, SECOND)
    kept, *_ = logs_in(manager, FIRST)
    files.fail(error, SECOND)
    with pytest.raises(StorageError) as failure:
        fail(manager, lost)
    assert failure.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.directories.has_failures
    (failed,) = manager.take_failed_directories()
    assert failed.path == SECOND
    assert set(failed.partitions) == {log.topic_partition for log in mine}
    assert set(manager.logs) == set(ORDERS) - set(failed.partitions)
    assert manager.take_failed_directories() == []
    append(kept)
    assert kept.log_end_offset == 2
    manager.close()
    assert files.exists(f"{FIRST}/.kafka_cleanshutdown")
    files.faults.clear()
    assert not files.exists(f"{SECOND}/.kafka_cleanshutdown")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE])
def test_no_room_and_no_descriptors_are_no_failure_of_the_disk(start, files, error):
    manager = start()
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID)
    append(log)
    full = files.fail(error, operations={"append", "create"})
    with pytest.raises(StorageError):
        append(log)
    with pytest.raises(StorageError):
        log.roll(NOW_MS)
    with pytest.raises(StorageError):
        manager.get_or_create_log(TopicPartition("new", 0))
    manager.checkpoint_offsets()
    assert manager.take_failed_directories() == []
    files.faults.remove(full)
    append(log)
    assert log.log_end_offset == 2


def test_a_sync_that_fails_takes_the_directory_offline_whatever_the_reason(start, files):
    """What the system could not write it may forget, and the next sync would tell nothing."""
    manager = start(FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID)
    append(log)
    files.fail(errno.ENOSPC, operations={"sync"})
    with pytest.raises(StorageError):
        log.flush_to_disk()
    assert [failed.path for failed in manager.take_failed_directories()] == [FIRST]


def test_a_checkpoint_that_cannot_be_written_takes_its_directory_offline(start, files):
    manager = start()
    for topic_partition in ORDERS:
        append(manager.get_or_create_log(topic_partition, TOPIC_ID))
    files.fail(errno.EROFS, SECOND)
    manager.checkpoint_high_watermarks(dict.fromkeys(ORDERS, 1).get)
    assert [failed.path for failed in manager.take_failed_directories()] == [SECOND]
    manager.checkpoint_high_watermarks(dict.fromkeys(ORDERS, 2).get)
    assert manager.take_failed_directories() == []
    assert b"orders 0 2\n" in files.read_bytes(f"{FIRST}/replication-offset-checkpoint")


def test_a_new_log_goes_to_another_directory_where_the_emptiest_fails(start, files):
    manager = start()
    files.fail(errno.EIO, FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID)
    assert directory_of(manager, log) == SECOND
    assert [failed.path for failed in manager.take_failed_directories()] == [FIRST]


def test_a_new_log_goes_to_another_directory_where_the_emptiest_is_full(start, files):
    manager = start()
    files.fail(errno.ENOSPC, FIRST)
    assert directory_of(manager, manager.get_or_create_log(ORDERS[0], TOPIC_ID)) == SECOND
    assert manager.take_failed_directories() == []


def test_of_directories_in_each_other_only_the_inner_one_fails(start, files):
    inner = f"{FIRST}/inner"
    manager = start(FIRST, inner)
    for topic_partition in ORDERS:
        append(manager.get_or_create_log(topic_partition, TOPIC_ID))
    files.fail(errno.EIO, inner)
    with pytest.raises(StorageError):
        append(logs_in(manager, inner)[0])
    assert [failed.path for failed in manager.take_failed_directories()] == [inner]
    append(logs_in(manager, FIRST)[0])


def test_work_on_a_log_that_was_deleted_meanwhile_is_no_failure_of_the_disk(start):
    manager = start(FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID)
    append(log)
    manager.delete_log(ORDERS[0])
    with pytest.raises(StorageError):
        append(log)
    assert manager.take_failed_directories() == []
    append(manager.get_or_create_log(ORDERS[0], TOPIC_ID))


# --- marks and folders -----------------------------------------------------------------


def test_a_clean_end_notes_the_brokers_epoch(start, files):
    start(FIRST).close(broker_epoch=42)
    assert json.loads(files.read_bytes(f"{FIRST}/.kafka_cleanshutdown")) == {
        "version": 0,
        "brokerEpoch": 42,
    }
    start(FIRST).close()
    assert json.loads(files.read_bytes(f"{FIRST}/.kafka_cleanshutdown"))["brokerEpoch"] == -1


def test_folders_that_kafka_sets_aside_are_left_alone(start, files):
    unique = "0123456789abcdef0123456789abcdef"
    for name in (f"orders-0.{unique}-future", f"orders-1.{unique}-stray"):
        files.make_directory(f"{FIRST}/{name}")
    manager = start(FIRST)
    assert manager.logs == {}
    assert len(manager.deletions) == 0
    assert files.exists(f"{FIRST}/orders-0.{unique}-future")


@pytest.mark.usefixtures("stopped")
def test_a_damaged_topic_id_is_refused_by_the_name_of_its_file(start, files):
    manager = start()
    path = f"{logs_in(manager, SECOND)[0].directory}/partition.metadata"
    manager.close()
    text = files.read_bytes(path)
    files.write_atomically(path, text.replace(b"version: 0", b"version: 8"))
    manager = start()
    assert [each.is_online for each in manager.directories] == [True, False]
    assert path in (list(manager.directories)[1].failure or "")


def test_a_topic_id_torn_before_anything_was_flushed_is_written_again(start, files):
    """Its batches may be those of another topic of that name: they are set aside."""
    manager = start(FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID)
    append(log)
    assert log.log_end_offset > 0
    manager.abandon()
    written = files.read_bytes(f"{FIRST}/orders-0/{0:020}.log")
    files.write_atomically(f"{FIRST}/orders-0/partition.metadata", b"version: 0\ntopic_")
    manager = start(FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID)
    assert (log.topic_id, log.log_end_offset) == (TOPIC_ID, 0)
    (kept,) = [each for each in files.list_directory(f"{FIRST}/orders-0") if each.endswith(".cut")]
    assert files.read_bytes(f"{FIRST}/orders-0/{kept}") == written
    append(log)
    assert log.log_end_offset > 0
    manager.close()
    assert start(FIRST).logs[ORDERS[0]].topic_id == TOPIC_ID


def test_a_torn_topic_id_that_nobody_requested_does_not_keep_the_next_start(start, files):
    manager = start(FIRST)
    append(manager.get_or_create_log(ORDERS[0], TOPIC_ID))
    manager.abandon()
    files.write_atomically(f"{FIRST}/orders-0/partition.metadata", b"")
    start(FIRST).close()  # stopped in good order: the log counts as flushed from now on
    manager = start(FIRST)
    assert manager.logs[ORDERS[0]].topic_id is None
    assert manager.get_or_create_log(ORDERS[0], TOPIC_ID).topic_id == TOPIC_ID


# --- checkpoints -----------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"0\n2\norders 0 1\n", b"\xff", b"0\n1\norders 0 x\n"])
def test_damaged_recovery_points_are_passed_over(start, files, text):
    manager = start(FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID, LogConfig(segment_bytes=100))
    for _ in range(3):
        append(log)
    log.flush_to_disk()
    manager.checkpoint_offsets()
    manager.abandon()
    files.write_atomically(f"{FIRST}/recovery-point-offset-checkpoint", text)
    again = start(FIRST).logs[ORDERS[0]]
    assert (again.log_start_offset, again.log_end_offset, again.recovery_point) == (0, 3, 0)


def test_no_checkpoint_speaks_of_an_earlier_topic_of_the_name(start, files):
    manager = start(FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID, LogConfig(segment_bytes=100))
    for _ in range(5):
        append(log)
    log.flush_to_disk()
    log.advance_log_start_offset(4)
    manager.checkpoint_offsets()
    manager.checkpoint_high_watermarks({ORDERS[0]: 5}.get)
    manager.delete_log(ORDERS[0])
    append(manager.get_or_create_log(ORDERS[0], bytes(16)))
    manager.abandon()
    again = start(FIRST)
    log = again.logs[ORDERS[0]]
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)
    assert again.high_watermarks.get(ORDERS[0], 0) == 0


def test_a_checkpoint_decided_on_earlier_does_not_replace_a_later_one(start, files):
    manager = start(FIRST)
    log = manager.get_or_create_log(ORDERS[0], TOPIC_ID)
    path = f"{FIRST}/replication-offset-checkpoint"
    early = run_at_once(manager.prepare_high_watermarks({ORDERS[0]: 1}.get))
    assert early is not None
    append(log)
    manager.checkpoint_high_watermarks({ORDERS[0]: 2}.get)
    early()
    assert files.read_bytes(path) == b"0\n1\norders 0 2\n"


def test_a_topic_that_is_made_anew_while_a_checkpoint_is_prepared_begins_at_0(start, files):
    """What was known of the replicas before would count its records as replicated after a crash."""
    manager = start(FIRST)
    for each in ORDERS[:2]:
        manager.get_or_create_log(each, TOPIC_ID)
    known = dict.fromkeys(ORDERS, 7)
    preparation = manager.prepare_high_watermarks(known.get)
    next(preparation)
    manager.delete_log(ORDERS[1])
    manager.get_or_create_log(ORDERS[1], TOPIC_ID)
    known[ORDERS[1]] = 0
    write = run_at_once(preparation)
    assert write is not None
    write()
    assert files.read_bytes(f"{FIRST}/replication-offset-checkpoint") in (
        b"0\n1\norders 0 7\n",
        b"0\n2\norders 0 7\norders 1 0\n",
    )
