"""Staging and publishing: what is readable when, and with which offsets."""

from __future__ import annotations

import pytest

from odradek.common.errors import KafkaError
from odradek.protocol.records import build_batch, iter_batches
from odradek.storage import AppendOrigin, UnexpectedAppendOffsetError

NOW_MS = 1_700_000_000_000


def test_a_batch_gets_the_next_offsets_and_the_leaders_epoch(open_log, append) -> None:
    log = open_log()
    first = append(log, b"a", b"b", b"c", leader_epoch=4)
    second = append(log, b"d", leader_epoch=4)
    assert (first.first_offset, first.last_offset, first.records_count) == (0, 2, 3)
    assert (second.first_offset, second.last_offset) == (3, 3)
    batches = list(iter_batches(log.read(0, 1 << 20).records.read()))
    assert [batch.base_offset for batch in batches] == [0, 3]
    assert {batch.partition_leader_epoch for batch in batches} == {4}


def test_what_is_staged_is_not_readable_until_it_is_flushed(open_log, append) -> None:
    log = open_log()
    append(log, b"published")
    append(log, b"staged", flush=False)
    append(log, b"staged too", flush=False)
    assert (log.log_end_offset, log.staged_end_offset) == (1, 3)
    assert len(log.read(1, 1 << 20).records) == 0
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log.read(2, 1 << 20)
    log.flush_appends()
    assert (log.log_end_offset, log.staged_end_offset) == (3, 3)
    assert len(list(iter_batches(log.read(1, 1 << 20).records.read()))) == 2


def test_offsets_are_written_into_the_callers_buffer(open_log) -> None:
    log = open_log()
    for offset in range(2):
        buffer = build_batch([(b"k", b"v", NOW_MS, [])])
        log.append_as_leader(memoryview(buffer), leader_epoch=7, now_ms=NOW_MS)
        assert int.from_bytes(buffer[:8], "big") == offset
        assert int.from_bytes(buffer[12:16], "big") == 7


def test_bytes_are_taken_too_and_left_as_they_are(open_log, read_all) -> None:
    log = open_log()
    batch = bytes(build_batch([(b"k", b"v", NOW_MS, [])]))
    log.append_as_leader(batch, leader_epoch=7, now_ms=NOW_MS)
    log.append_as_leader(batch, leader_epoch=7, now_ms=NOW_MS)
    log.flush_appends()
    assert [record.offset for record in read_all(log)] == [0, 1]
    assert batch == bytes(build_batch([(b"k", b"v", NOW_MS, [])]))


def test_more_batches_than_one_system_call_takes_are_all_written(open_log, append) -> None:
    log = open_log()
    for number in range(2500):
        append(log, b"%d" % number, flush=False)
    log.flush_appends()
    slices = log.read(0, 1 << 30).records
    assert [batch.base_offset for batch in iter_batches(slices.read())] == list(range(2500))
    assert log.size == len(slices)


def test_flushing_nothing_does_nothing(open_log) -> None:
    log = open_log()
    log.flush_appends()
    assert log.log_end_offset == 0


def test_a_coordinator_may_write_control_batches(open_log, read_all) -> None:
    log = open_log()
    marker = build_batch(
        [(b"\0\0\0\x01", b"\0\0\0\0\0\x05", NOW_MS, [])],
        control=True,
        transactional=True,
        producer_id=1,
        producer_epoch=0,
    )
    log.append_as_leader(marker, leader_epoch=0, origin=AppendOrigin.COORDINATOR, now_ms=NOW_MS)
    log.flush_appends()
    assert [record.key for record in read_all(log)] == [b"\0\0\0\x01"]


def test_a_follower_takes_offsets_and_epochs_as_they_come(open_log, read_all) -> None:
    log = open_log()
    sent = bytearray()
    for offset, epoch in ((10, 1), (11, 1), (20, 3)):
        sent += build_batch(
            [(b"k", b"v", NOW_MS + offset, [])], base_offset=offset, partition_leader_epoch=epoch
        )
    info = log.append_as_follower(sent + sent[:69])  # the last batch is cut by the fetch's size
    log.flush_appends()
    assert (info.first_offset, info.last_offset, info.size) == (10, 20, len(sent))
    assert [record.offset for record in read_all(log)] == [10, 11, 20]
    assert log.log_end_offset == 21
    assert log.end_offset_for_epoch(1) == (1, 20)
    assert log.end_offset_for_epoch(3) == (3, 21)


def test_a_follower_refuses_offsets_it_has_already(open_log, append) -> None:
    log = open_log()
    append(log, b"a", b"b")
    with pytest.raises(UnexpectedAppendOffsetError) as refused:
        log.append_as_follower(build_batch([(b"k", b"v", 0, [])] * 2, base_offset=1))
    assert (refused.value.first_offset, refused.value.last_offset) == (1, 2)
    assert log.staged_end_offset == 2


def test_a_follower_stages_nothing_of_a_fetch_with_a_damaged_batch(open_log) -> None:
    log = open_log()
    good = build_batch([(b"k", b"v", 0, [])], producer_id=1, producer_epoch=0, base_sequence=0)
    bad = build_batch([(b"k", b"v", 0, [])], base_offset=1)
    bad[-1] ^= 1
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        log.append_as_follower(good + bad)
    assert log.staged_end_offset == 0
    log.append_as_follower(good)
    log.flush_appends()
    assert log.log_end_offset == 1
