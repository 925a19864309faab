"""A disk that is full or broken, by a fake and by a limit of the operating system."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol.records import build_batch
from odradek.storage import StorageError

NOW_MS = 1_700_000_000_000
BATCH_BYTES = len(build_batch([(b"key", b"value", NOW_MS, [])]))


@pytest.fixture
def log(open_log, append, faulty_files):
    """Two batches on a disk that has become faulty-able."""
    made = open_log(files=faulty_files, segment_bytes=5 * BATCH_BYTES)
    append(made, producer_id=1, producer_epoch=0, base_sequence=0)
    append(made, producer_id=1, producer_epoch=0, base_sequence=1)
    return made


@pytest.mark.parametrize("room_bytes", [0, 1, BATCH_BYTES, 2 * BATCH_BYTES - 1])
def test_a_full_disk_drops_all_that_was_staged(log, append, read_all, faulty_files, room_bytes):
    faulty_files.room_bytes = room_bytes
    append(log, producer_id=1, producer_epoch=0, base_sequence=2, flush=False)
    append(log, producer_id=1, producer_epoch=0, base_sequence=3, flush=False)
    with pytest.raises(StorageError) as refused:
        log.flush_appends()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.log_end_offset, log.staged_end_offset, log.size) == (2, 2, 2 * BATCH_BYTES)
    assert log.segments.active.file.size() == 2 * BATCH_BYTES
    assert [record.offset for record in read_all(log)] == [0, 1]


def test_appends_work_again_once_there_is_room(log, append, read_all, faulty_files):
    faulty_files.room_bytes = 5
    append(log, producer_id=1, producer_epoch=0, base_sequence=2, flush=False)
    with pytest.raises(StorageError):
        log.flush_appends()
    faulty_files.room_bytes = None
    again = append(log, producer_id=1, producer_epoch=0, base_sequence=2)
    assert (again.duplicate, again.first_offset) == (False, 2)
    assert [record.offset for record in read_all(log)] == [0, 1, 2]


def test_a_tail_that_could_not_be_cut_is_cut_before_the_next_write(
    log, append, read_all, faulty_files, open_log
):
    faulty_files.room_bytes = 5
    faulty_files.truncation_fails = True
    append(log, flush=False)
    with pytest.raises(StorageError):
        log.flush_appends()
    faulty_files.room_bytes = None
    append(log, flush=False)
    with pytest.raises(StorageError):  # still cannot be cut
        log.flush_appends()
    faulty_files.truncation_fails = False
    append(log)
    assert [record.offset for record in read_all(log)] == [0, 1, 2]
    assert log.segments.active.file.size() == 3 * BATCH_BYTES
    log.close()
    assert open_log(clean_shutdown=True).log_end_offset == 3


@pytest.mark.parametrize("room_batches", [2, 4, 6])
def test_a_disk_full_in_a_new_segment_drops_that_segment_too(
    log, append, read_all, faulty_files, room_batches
):
    faulty_files.room_bytes = room_batches * BATCH_BYTES + 3
    for _ in range(9):
        append(log, flush=False)
    with pytest.raises(StorageError):
        log.flush_appends()
    assert len(log.segments) == 1
    assert [record.offset for record in read_all(log)] == [0, 1]
    faulty_files.room_bytes = None
    for _ in range(9):
        append(log, flush=False)
    log.flush_appends()
    assert [record.offset for record in read_all(log)] == list(range(11))
    assert [segment.base_offset for segment in log.segments] == [0, 5, 10]


def test_a_segment_that_cannot_be_made_is_a_storage_error(log, append, read_all, faulty_files):
    faulty_files.files_can_be_made = False
    for _ in range(4):
        append(log, flush=False)
    with pytest.raises(StorageError):
        log.flush_appends()
    with pytest.raises(StorageError):
        log.roll(NOW_MS)
    faulty_files.files_can_be_made = True
    append(log)
    assert [record.offset for record in read_all(log)] == [0, 1, 2]


def test_a_log_on_a_full_disk_is_not_closed_as_clean(log, append, faulty_files):
    faulty_files.room_bytes = 0
    faulty_files.files_can_be_made = False
    with pytest.raises(StorageError):
        log.close()


def test_an_index_written_halfway_is_written_again(open_log, append, faulty_files, read_all):
    log = open_log(files=faulty_files, index_interval_bytes=1)
    for _ in range(10):
        append(log)
    log.segments.active.flush_indexes()
    append(log)
    faulty_files.room_bytes = 3
    with pytest.raises(StorageError):
        log.close()
    faulty_files.room_bytes = None
    log.close()
    again = open_log(clean_shutdown=True)
    index = again.segments.active.offset_index
    assert [index.entry(slot)[0] for slot in range(len(index))] == list(range(1, 11))
    assert [record.offset for record in read_all(again)] == list(range(11))


def test_a_real_limit_on_file_size_is_survived(tmp_path):
    """RLIMIT_FSIZE makes the kernel write a part of a batch and then refuse."""
    program = """
        import resource, sys
        from odradek.protocol.records import build_batch, iter_batches
        from odradek.storage import LogConfig, StorageError, TopicPartition, load_log

        partition = TopicPartition("t", 0)
        log = load_log(sys.argv[1], partition, LogConfig())
        batch = bytes(build_batch([(b"k", bytes(1000), 5, [])]))

        def append(count):
            for _ in range(count):
                log.append_as_leader(batch, leader_epoch=0, now_ms=5)
            log.flush_appends()

        append(3)
        published = log.size
        resource.setrlimit(resource.RLIMIT_FSIZE, (published + 1500, resource.RLIM_INFINITY))
        try:
            append(2)
        except StorageError:
            print("refused")
        print(log.log_end_offset, log.segments.active.file.size() == published)
        append(1)
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
        append(2)
        print([each.base_offset for each in iter_batches(log.read(0, 1 << 20).records.read())])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "t-0")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["refused", "3 True", "[0, 1, 2, 3, 4, 5]"], done.stderr
