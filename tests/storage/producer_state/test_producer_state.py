"""What a log remembers of its producers over rolls, restarts, cuts and time."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.transactions import TransactionalProducer, marker

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.records import build_batch
from odradek.protocol.records.builder import write_crc
from odradek.runtime.steps import run_at_once
from odradek.storage import AppendOrigin, Log
from odradek.storage.file_names import snapshot_path
from odradek.storage.producer_state.producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from odradek.storage.producer_state.producer_state import BatchMetadata, ProducerState

NOW_MS = 1_700_000_000_000

KAFKAS_SNAPSHOT = bytes.fromhex(
    "000139e03f9600000001000000000000000000000000000100000000000000020000000000000000"
    "00000bb8ffffffff0000000000000001"
)
"""Written by Apache Kafka 4.3.1. Its DumpLogSegments prints of it: producerId: 0, producerEpoch: 0,
coordinatorEpoch: -1, currentTxnFirstOffset: 1, lastTimestamp: 3000, lastSequence: 1, lastOffset: 2,
offsetDelta: 0."""


def snapshots(log: Log) -> list[int]:
    return sorted(int(path.stem) for path in Path(log.directory).glob("*.snapshot"))


@pytest.fixture
def two_a_segment(open_log):
    """Opens a log whose segments take two batches of a producer."""

    def open_it(**arguments) -> Log:
        return open_log(segment_bytes=160, file_delete_delay_ms=0, **arguments)

    return open_it


def write(log: Log, count: int, producer_id: int = 1) -> TransactionalProducer:
    producer = TransactionalProducer(log, producer_id)
    for _ in range(count):
        producer.write(transactional=False)
    return producer


# --- the snapshot's file ---------------------------------------------------------------------


def test_kafkas_snapshot_is_read_and_written_alike() -> None:
    states = decode_snapshot(KAFKAS_SNAPSHOT)
    assert states == {0: ProducerState(0, (BatchMetadata(1, 2, 0, 3000),), 3000, -1, 1)}
    assert encode_snapshot(states) == KAFKAS_SNAPSHOT


def test_every_flipped_bit_of_a_snapshot_is_reported() -> None:
    for position in range(len(KAFKAS_SNAPSHOT)):
        for bit in range(8):
            damaged = bytearray(KAFKAS_SNAPSHOT)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptSnapshotError):
                decode_snapshot(bytes(damaged))


@pytest.mark.parametrize("size", [0, 1, 5, 9, 10, 55])
def test_a_snapshot_cut_short_is_reported(size: int) -> None:
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(KAFKAS_SNAPSHOT[:size])


# --- when snapshots are taken and removed ----------------------------------------------------


def test_a_snapshot_is_taken_at_each_roll_and_at_a_clean_end(two_a_segment) -> None:
    log = two_a_segment()
    write(log, 5)
    assert snapshots(log) == [2, 4]
    log.close()
    assert snapshots(log) == [2, 4, 5]


def test_a_clean_end_without_news_writes_no_snapshot(two_a_segment) -> None:
    log = two_a_segment()
    write(log, 5)
    log.close()
    path = Path(snapshot_path(log.directory, 5))
    before = path.stat()
    again = two_a_segment(clean_shutdown=True)
    again.close()
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_empty_log_has_no_snapshot(open_log) -> None:
    log = open_log()
    log.close()
    assert snapshots(log) == []


def test_the_snapshot_of_an_earlier_clean_end_goes_with_the_next_start(two_a_segment) -> None:
    log = two_a_segment()
    producer = write(log, 5)
    log.close()
    producer.log = again = two_a_segment(clean_shutdown=True)
    producer.write(transactional=False)
    again.close()
    assert snapshots(again) == [2, 4, 5, 6]
    assert snapshots(two_a_segment(clean_shutdown=True)) == [2, 4, 6]


def test_truncation_removes_the_snapshots_behind_it_and_takes_one_at_the_end(two_a_segment) -> None:
    log = two_a_segment()
    write(log, 7)
    log.truncate_to(3)
    assert snapshots(log) == [2, 3]
    assert log.producers.get(1).last_sequence == 2


def test_beginning_anew_removes_all_snapshots(two_a_segment) -> None:
    log = two_a_segment()
    write(log, 7)
    log.truncate_fully_and_start_at(100)
    assert snapshots(log) == []
    assert log.producers.published == {}


def test_deleted_segments_take_their_snapshots_along(two_a_segment) -> None:
    log = two_a_segment()
    write(log, 7)
    log.advance_log_start_offset(4)
    log.delete_old_segments(NOW_MS, high_watermark=7)
    assert snapshots(log) == [4, 6]


def test_a_start_removes_snapshots_before_the_log_start_and_strays(two_a_segment) -> None:
    log = two_a_segment()
    write(log, 7)
    log.close()
    for stray in (1, 5, 9):
        Path(snapshot_path(log.directory, stray)).write_bytes(encode_snapshot({}))
    assert snapshots(two_a_segment(clean_shutdown=True, log_start_offset=2)) == [2, 4, 6, 7]


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_producers_are_known_where_all_their_records_have_expired(
    two_a_segment, clean_shutdown: bool
) -> None:
    log = two_a_segment()
    write(log, 4)
    log.roll(NOW_MS)
    log.advance_log_start_offset(4)
    log.delete_old_segments(NOW_MS, high_watermark=4)
    assert log.log_start_offset == log.log_end_offset == 4
    log.close()
    again = two_a_segment(clean_shutdown=clean_shutdown, log_start_offset=4)
    assert again.producers.get(1).last_sequence == 3


@pytest.mark.parametrize("damaged", [[5], [5, 4], [5, 4, 2]])
def test_a_damaged_snapshot_is_replaced_by_an_older_one_and_the_log(
    two_a_segment, damaged: list[int]
) -> None:
    log = two_a_segment()
    write(log, 5)
    log.close()
    for offset in damaged:
        Path(snapshot_path(log.directory, offset)).write_bytes(KAFKAS_SNAPSHOT[:-1] + b"\7")
    again = two_a_segment(clean_shutdown=True)
    assert list(again.producers.published) == [1]
    assert again.producers.get(1).last_sequence == 4
    assert decode_snapshot(Path(snapshot_path(log.directory, 5)).read_bytes())[1].last_sequence == 4


def test_a_snapshot_that_cannot_be_written_is_done_without(two_a_segment, faulty_files) -> None:
    log = two_a_segment(files=faulty_files)
    real = faulty_files.write_atomically

    def refuse(path: str, data: bytes, *, sync: bool = False) -> None:
        if path.endswith(".snapshot"):
            raise OSError(28, "No space left on device")
        real(path, data, sync=sync)

    faulty_files.write_atomically = refuse
    write(log, 5)
    assert log.log_end_offset == 5
    assert snapshots(log) == []
    again = two_a_segment(files=faulty_files)
    assert again.producers.get(1).last_sequence == 4


# --- what a restart knows --------------------------------------------------------------------


def test_after_a_clean_end_the_last_batch_is_known(open_log) -> None:
    log = open_log()
    producer = write(log, 3)
    log.close()
    producer.log = again = open_log(clean_shutdown=True)
    assert [batch.last_sequence for batch in again.producers.get(1).batches] == [2]
    producer.sequence = 2
    assert producer.write(transactional=False) == 2  # a repetition
    producer.sequence = 1
    with pytest.raises(KafkaError) as refused:
        producer.write(transactional=False)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_after_a_crash_the_last_five_batches_are_known(two_a_segment) -> None:
    log = two_a_segment()
    producer = write(log, 7)
    producer.log = again = two_a_segment()
    assert again.producers.get(1) == log.producers.get(1)
    for sequence in range(2, 7):
        producer.sequence = sequence
        assert producer.write(transactional=False) == sequence
    assert again.log_end_offset == 7


def test_expired_producers_are_not_loaded(open_log) -> None:
    log = open_log()
    write(log, 1, producer_id=1)
    TransactionalProducer(log, 2).write()
    log.close()
    later = {"clean_shutdown": True, "producer_id_expiration_ms": 1000}
    assert list(open_log(now_ms=NOW_MS + 999, **later).producers.published) == [1, 2]
    assert list(open_log(now_ms=NOW_MS + 1000, **later).producers.published) == [2]


def test_a_producer_in_a_transaction_does_not_expire(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write()
    run_at_once(log.producers.remove_expired(NOW_MS + 10**9, expiration_ms=1))
    assert list(log.producers.published) == [1]
    producer.end(commit=True)
    run_at_once(log.producers.remove_expired(NOW_MS + 10**9, expiration_ms=1))
    assert log.producers.published == {}


def test_a_marker_counts_as_a_sign_of_life(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write(timestamp=NOW_MS)
    producer.end(commit=True, timestamp=NOW_MS + 500)
    run_at_once(log.producers.remove_expired(NOW_MS + 1000, expiration_ms=1000))
    assert list(log.producers.published) == [1]


def test_a_producer_nobody_remembers_may_go_on_where_it_was(open_log) -> None:
    log = open_log()
    producer = write(log, 3)
    run_at_once(log.producers.remove_expired(NOW_MS + 10**9, expiration_ms=1))
    assert producer.write(transactional=False) == 3


# --- markers ---------------------------------------------------------------------------------


def append_marker(log: Log, **what) -> int:
    info = log.append_as_leader(
        marker(1, commit=True, **what),
        leader_epoch=0,
        origin=AppendOrigin.COORDINATOR,
        now_ms=NOW_MS,
    )
    log.flush_appends()
    return info.first_offset


def test_a_marker_for_an_unknown_producer_makes_it_known(open_log) -> None:
    log = open_log()
    append_marker(log, epoch=5, coordinator_epoch=3)
    assert log.producers.get(1) == ProducerState(5, (), NOW_MS, 3, -1)


def test_a_fenced_coordinator_changes_nothing(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write()
    producer.end(commit=True, coordinator_epoch=4)
    producer.write()
    state = log.producers.get(1)
    with pytest.raises(KafkaError) as refused:
        producer.end(commit=True, coordinator_epoch=3)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.producers.get(1) == state
    assert log.last_stable_offset == 0
    producer.end(commit=True, coordinator_epoch=5)


def test_the_coordinators_epoch_survives_a_restart(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write()
    producer.end(commit=True, coordinator_epoch=4)
    log.close()
    producer.log = open_log(clean_shutdown=True)
    with pytest.raises(KafkaError) as refused:
        producer.end(commit=True, coordinator_epoch=3)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_newer_epoch_takes_over_an_open_transaction(open_log) -> None:
    log = open_log()
    TransactionalProducer(log, 1, epoch=0).write()
    newer = TransactionalProducer(log, 1, epoch=1)
    newer.write()
    assert log.last_stable_offset == 0
    newer.end(commit=False)
    assert [aborted.first_offset for aborted in log.aborted_transactions(0, 3)] == [0]


def test_what_one_producer_stages_counts_for_its_next_batch(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write(flush=False)
    producer.end(commit=False, flush=False)
    producer.write(flush=False)
    producer.end(commit=True, flush=False)
    assert log.producers.published == {}
    log.flush_appends()
    assert [tuple(each) for each in log.aborted_transactions(0, 4)] == [(1, 0, 1, 2)]
    assert [each for each, _ in log.producers.unreplicated] == [1, 3]
    assert log.producers.open_transactions == {}


def test_a_control_batch_without_records_changes_nothing(open_log) -> None:
    log = open_log()
    TransactionalProducer(log, 1).write()
    emptied = build_batch([(b"k", b"v", NOW_MS, [])], control=True, transactional=True,
                          producer_id=1, producer_epoch=0, base_offset=1,
                          partition_leader_epoch=0)[:61]  # fmt: skip
    emptied[8:12] = (49).to_bytes(4, "big")
    emptied[57:61] = bytes(4)
    write_crc(emptied)
    log.append_as_follower(emptied)
    log.flush_appends()
    assert log.producers.open_transactions == {1: 0}
    assert log.log_end_offset == 2
