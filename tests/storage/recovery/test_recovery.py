"""Starting again after a proper end, and after a crash."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from odradek.protocol.records import build_batch

NOW_MS = 1_700_000_000_000
BATCH_BYTES = len(build_batch([(b"key", b"value", NOW_MS, [])]))


def log_file(log, base_offset: int = 0) -> Path:
    return Path(log.directory) / f"{base_offset:020d}.log"


def contents(log) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(log.directory).iterdir()}


@pytest.fixture
def filled(open_log, append):
    """Ten batches in four segments, three epochs, an idempotent producer; not closed."""
    log = open_log(segment_bytes=3 * BATCH_BYTES, index_interval_bytes=1)
    for number in range(10):
        append(
            log,
            timestamp=NOW_MS + number,
            leader_epoch=number // 4,
            producer_id=1,
            producer_epoch=0,
            base_sequence=number,
        )
    return log


def reopen(open_log, **arguments):
    return open_log(segment_bytes=3 * BATCH_BYTES, index_interval_bytes=1, **arguments)


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_a_restart_finds_everything_again(filled, open_log, append, read_all, clean_shutdown):
    if clean_shutdown:
        filled.close()
    log = reopen(open_log, clean_shutdown=clean_shutdown)
    assert [record.offset for record in read_all(log)] == list(range(10))
    assert (log.log_start_offset, log.log_end_offset, log.size) == (0, 10, 10 * BATCH_BYTES)
    assert log.epochs.entries == [(0, 0), (1, 4), (2, 8)]
    assert append(log, producer_id=1, producer_epoch=0, base_sequence=9).duplicate
    assert log.max_timestamp()[:2] == (NOW_MS + 9, 9)
    assert append(log).first_offset == 10


def test_a_crash_leaves_the_indexes_to_be_made_as_a_clean_end_writes_them(filled, open_log):
    filled.close()
    closed = contents(filled)
    for name in closed:
        if name.endswith((".index", ".timeindex", ".snapshot", "checkpoint")):
            (Path(filled.directory) / name).unlink()
    reopen(open_log).close()
    again = contents(filled)
    assert again == closed


@pytest.mark.parametrize("torn_bytes", [1, 60, 61, BATCH_BYTES - 1])
def test_a_torn_batch_at_the_end_is_cut(filled, open_log, read_all, append, torn_bytes):
    with log_file(filled, 9).open("ab") as file:
        file.write(build_batch([(b"key", b"value", NOW_MS, [])], base_offset=10)[:torn_bytes])
    log = reopen(open_log)
    assert [record.offset for record in read_all(log)] == list(range(10))
    assert log_file(log, 9).stat().st_size == BATCH_BYTES
    assert append(log).first_offset == 10


def test_zeros_at_the_end_are_cut_as_a_crashed_file_system_leaves_them(filled, open_log):
    with log_file(filled, 9).open("ab") as file:
        file.write(bytes(5000))
    assert reopen(open_log).log_end_offset == 10
    assert log_file(filled, 9).stat().st_size == BATCH_BYTES


@pytest.mark.parametrize("damaged_offset", range(10))
def test_a_damaged_batch_ends_the_log(filled, open_log, read_all, append, damaged_offset):
    base_offset = damaged_offset // 3 * 3
    path = log_file(filled, base_offset)
    data = bytearray(path.read_bytes())
    data[(damaged_offset - base_offset) * BATCH_BYTES + 65] ^= 1
    path.write_bytes(data)
    log = reopen(open_log)
    assert [record.offset for record in read_all(log)] == list(range(damaged_offset))
    assert all(start < max(damaged_offset, 1) for _, start in log.epochs.entries)
    sequence = damaged_offset
    assert append(log, producer_id=1, producer_epoch=0, base_sequence=sequence).first_offset == (
        damaged_offset
    )


def test_what_was_flushed_is_taken_at_its_word(filled, open_log):
    data = bytearray(log_file(filled).read_bytes())
    data[65] ^= 1
    log_file(filled).write_bytes(data)
    filled.segments.first.flush_indexes()
    assert reopen(open_log, recovery_point=3).log_end_offset == 10
    assert reopen(open_log, recovery_point=2).log_end_offset == 0


def test_offsets_that_go_backwards_end_the_log(filled, open_log):
    path = log_file(filled)
    data = bytearray(path.read_bytes())
    struct.pack_into(">q", data, 2 * BATCH_BYTES, 1)  # not covered by the checksum
    path.write_bytes(data)
    assert reopen(open_log).log_end_offset == 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_made_anew(filled, open_log, read_all, suffix):
    filled.close()
    before = contents(filled)
    (Path(filled.directory) / f"{3:020d}{suffix}").unlink()
    log = reopen(open_log, clean_shutdown=True)
    assert contents(log) == before
    assert [record.offset for record in read_all(log)] == list(range(10))


def test_an_index_without_its_log_is_removed(filled, open_log):
    stray = Path(filled.directory) / f"{99:020d}.index"
    stray.write_bytes(bytes(8))
    reopen(open_log)
    assert not stray.exists()


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".tmp"])
def test_leftovers_of_interrupted_work_are_removed(filled, open_log, suffix):
    stray = Path(filled.directory) / f"{3:020d}.log{suffix}"
    stray.write_bytes(b"half")
    reopen(open_log)
    assert not stray.exists()


def test_a_damaged_snapshot_is_replaced_by_reading_the_log(filled, open_log, append):
    filled.close()
    for path in Path(filled.directory).glob("*.snapshot"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    log = reopen(open_log, clean_shutdown=True)
    assert append(log, producer_id=1, producer_epoch=0, base_sequence=8).duplicate
    assert append(log, producer_id=1, producer_epoch=0, base_sequence=10).first_offset == 10


def test_index_files_made_larger_ahead_by_kafka_are_read(filled, open_log, read_all):
    filled.close()
    for suffix in (".index", ".timeindex"):
        with (Path(filled.directory) / f"{9:020d}{suffix}").open("ab") as file:
            file.write(bytes(12 * 1000))
    log = reopen(open_log, clean_shutdown=True)
    assert log.log_end_offset == 10
    assert log.max_timestamp()[:2] == (NOW_MS + 9, 9)


def test_the_log_start_offset_is_kept_by_who_keeps_checkpoints(filled, open_log, read_all):
    filled.close()
    log = reopen(open_log, clean_shutdown=True, log_start_offset=5)
    assert [record.offset for record in read_all(log)] == list(range(5, 10))
    assert log.epochs.entries == [(1, 5), (2, 8)]


def test_a_log_that_lost_its_files_begins_at_the_known_start(filled, open_log, append):
    log = reopen(open_log, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert append(log).first_offset == 50


def test_a_new_log_has_few_files(open_log):
    log = open_log(topic_id=bytes(15) + b"\x07")
    assert sorted(os.listdir(log.directory)) == [f"{0:020d}.log", "partition.metadata"]
    assert (Path(log.directory) / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw"
    )


def test_flushing_moves_the_recovery_point(filled):
    assert filled.recovery_point == 0
    filled.flush_to_disk()
    assert filled.recovery_point == 10


def test_a_flush_that_ran_while_the_log_was_cut_counts_for_nothing(filled, append):
    flush = filled.start_flush()
    flush.run()
    filled.truncate_to(5)
    append(filled)
    filled.finish_flush(flush)
    assert filled.recovery_point == 0


@pytest.mark.parametrize("tail", [bytes(1), bytes(100), b"\xff" * 100])
def test_a_mark_of_a_clean_end_is_not_believed_against_the_file(filled, open_log, append, tail):
    filled.close()
    with log_file(filled, 9).open("ab") as file:
        file.write(tail)
    log = reopen(open_log, clean_shutdown=True)
    assert log.log_end_offset == 10
    assert append(log).first_offset == 10
    log.close()
    assert reopen(open_log, clean_shutdown=True).log_end_offset == 11
