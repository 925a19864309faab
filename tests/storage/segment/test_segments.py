"""Rolling, truncating and retention."""

from __future__ import annotations

import os

import pytest

from odradek.common.errors import KafkaError
from odradek.protocol.records import build_batch

NOW_MS = 1_700_000_000_000
BATCH_BYTES = len(build_batch([(b"key", b"value", NOW_MS, [])]))


def base_offsets(log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def files_of(log) -> list[str]:
    return sorted(os.listdir(log.directory))


def test_a_segment_is_filled_to_its_last_byte(open_log, append) -> None:
    log = open_log(segment_bytes=3 * BATCH_BYTES)
    for _ in range(3):
        append(log)
    assert base_offsets(log) == [0]
    append(log)
    assert base_offsets(log) == [0, 3]
    assert log.segments.first.size == 3 * BATCH_BYTES


def test_batches_staged_in_one_pass_spread_over_new_segments(open_log, append, read_all) -> None:
    log = open_log(segment_bytes=3 * BATCH_BYTES)
    append(log)
    for _ in range(9):
        append(log, flush=False)
    assert base_offsets(log) == [0]
    log.flush_appends()
    assert base_offsets(log) == [0, 3, 6, 9]
    assert [record.offset for record in read_all(log)] == list(range(10))
    append(log)
    append(log)
    append(log)
    assert base_offsets(log) == [0, 3, 6, 9, 12]


def test_a_full_segment_with_nothing_staged_for_it_is_left_as_it_is(open_log, append) -> None:
    log = open_log(segment_bytes=BATCH_BYTES)
    append(log)
    append(log, flush=False)
    append(log, flush=False)
    log.flush_appends()
    assert base_offsets(log) == [0, 1, 2]
    assert [segment.size for segment in log.segments] == [BATCH_BYTES] * 3


def test_a_segment_rolls_when_records_are_later_than_its_first_by_segment_ms(
    open_log, append
) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=5000)
    append(log, timestamp=6000)
    assert base_offsets(log) == [0]
    append(log, timestamp=6001)
    assert base_offsets(log) == [0, 2]


def test_batches_of_one_pass_roll_by_their_times_too(open_log, append) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=5000)
    for timestamp in (6001, 7001, 7002):
        append(log, timestamp=timestamp, flush=False)
    log.flush_appends()
    assert base_offsets(log) == [0, 1, 3]


def test_without_timestamps_a_segment_rolls_by_its_age(open_log, append) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=-1, now_ms=NOW_MS)
    append(log, timestamp=-1, now_ms=NOW_MS + 1000)
    assert base_offsets(log) == [0]
    append(log, timestamp=-1, now_ms=NOW_MS + 1001)
    assert base_offsets(log) == [0, 2]


def test_a_reloaded_segment_rolls_by_its_first_batch(open_log, append) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=5000)
    log.close()
    log = open_log(segment_ms=1000, clean_shutdown=True)
    append(log, timestamp=6001)
    assert base_offsets(log) == [0, 1]


def test_a_changed_segment_ms_holds_for_the_segment_in_use(open_log, append) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=5000)
    log.configure(log.config._replace(segment_ms=100))
    append(log, timestamp=5101)
    assert base_offsets(log) == [0, 1]


def test_a_segment_rolls_when_its_index_is_full(open_log, append) -> None:
    log = open_log(segment_index_bytes=36, index_interval_bytes=1)
    for _ in range(12):
        append(log, timestamp=NOW_MS)
    assert len(log.segments) > 1
    for segment in log.segments:
        assert len(segment.offset_index.entries) <= 36
        assert len(segment.time_index.entries) <= 36


def test_offsets_too_far_from_the_base_get_a_segment_of_their_own(open_log) -> None:
    log = open_log()
    for offset in (0, 2**31 - 1, 2**31):
        log.append_as_follower(build_batch([(b"k", b"v", 0, [])], base_offset=offset))
        log.flush_appends()
    assert base_offsets(log) == [0, 2**31]


def test_rolling_by_hand_begins_a_segment_at_the_end_unless_it_is_empty(open_log, append) -> None:
    log = open_log()
    log.roll(NOW_MS)
    append(log)
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert base_offsets(log) == [0, 1]
    append(log)
    assert log.log_end_offset == 2


# --- truncation


@pytest.mark.parametrize("offset", range(8))
def test_truncating_drops_batches_and_segments_from_an_offset_on(
    open_log, append, read_all, offset: int
) -> None:
    log = open_log(segment_bytes=3 * BATCH_BYTES, index_interval_bytes=1)
    for number in range(8):
        append(log, b"value", timestamp=NOW_MS + number)
    generation = log.generation
    assert log.truncate_to(offset)
    assert log.generation > generation
    assert log.log_end_offset == offset
    assert log.size == offset * BATCH_BYTES
    assert append(log).first_offset == offset
    assert [record.offset for record in read_all(log)] == list(range(offset + 1))
    log.close()
    again = open_log(clean_shutdown=True)
    assert [record.offset for record in read_all(again)] == list(range(offset + 1))


def test_truncating_inside_a_batch_drops_the_whole_batch(open_log, append) -> None:
    log = open_log()
    append(log, b"a", b"b")
    append(log, b"c", b"d")
    log.truncate_to(3)
    assert log.log_end_offset == 2


def test_truncating_at_or_behind_the_end_changes_nothing(open_log, append) -> None:
    log = open_log()
    append(log)
    assert not log.truncate_to(1)
    assert not log.truncate_to(5)
    assert log.log_end_offset == 1


def test_truncating_everything_begins_anew_at_any_offset(open_log, append, read_all) -> None:
    log = open_log(segment_bytes=2 * BATCH_BYTES)
    for _ in range(5):
        append(log, leader_epoch=3)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (100, 100, 0)
    assert log.latest_epoch() == -1
    assert append(log).first_offset == 100
    assert [name for name in files_of(log) if name.endswith(".log")] == [f"{100:020d}.log"]


def test_truncating_to_before_the_first_segment_begins_anew_there(open_log, append) -> None:
    log = open_log()
    log.truncate_fully_and_start_at(100)
    append(log)
    log.truncate_to(40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)


def test_truncating_takes_producers_back_to_what_is_left(open_log, append) -> None:
    log = open_log(segment_bytes=2 * BATCH_BYTES)
    for sequence in range(6):
        append(log, producer_id=1, producer_epoch=0, base_sequence=sequence)
    log.truncate_to(3)
    again = append(log, producer_id=1, producer_epoch=0, base_sequence=2)
    assert (again.duplicate, again.first_offset) == (True, 2)
    assert append(log, producer_id=1, producer_epoch=0, base_sequence=3).first_offset == 3


# --- retention


@pytest.fixture
def aged(open_log, append):
    """Four segments of two batches each, the n-th batch from second n."""

    def make(**config):
        log = open_log(segment_bytes=2 * BATCH_BYTES, **config)
        for number in range(8):
            append(log, timestamp=number * 1000)
        assert base_offsets(log) == [0, 2, 4, 6]
        return log

    return make


@pytest.mark.parametrize(
    ("now_ms", "left"),
    [(11_000, [0, 2, 4, 6]), (11_001, [2, 4, 6]), (13_001, [4, 6]), (16_000, [6]), (17_001, [8])],
)
def test_segments_go_when_their_latest_record_is_too_old(aged, now_ms: int, left) -> None:
    log = aged(retention_ms=10_000)
    log.delete_old_segments(now_ms, high_watermark=8)
    assert base_offsets(log) == left
    assert log.log_start_offset == left[0]
    assert log.size == (8 - left[0]) * BATCH_BYTES


@pytest.mark.parametrize(
    ("retention_bytes", "left"),
    [(8, [0, 2, 4, 6]), (7, [0, 2, 4, 6]), (6, [2, 4, 6]), (3, [4, 6]), (2, [6]), (1, [6])],
)
def test_segments_go_while_the_log_stays_as_large_as_it_may_be(aged, retention_bytes, left) -> None:
    log = aged(retention_bytes=retention_bytes * BATCH_BYTES, retention_ms=-1)
    log.delete_old_segments(NOW_MS, high_watermark=8)
    assert base_offsets(log) == left


def test_segments_before_the_log_start_go_whatever_the_policy(aged) -> None:
    log = aged(cleanup_policy=frozenset({"compact"}))
    log.advance_log_start_offset(5)
    assert log.delete_old_segments(NOW_MS, high_watermark=8) == 2
    assert base_offsets(log) == [4, 6]
    assert log.log_start_offset == 5


def test_what_is_not_replicated_stays(aged) -> None:
    log = aged(retention_ms=0)
    log.delete_old_segments(NOW_MS, high_watermark=5)
    assert base_offsets(log) == [4, 6]


def test_a_compacted_log_is_not_cut_by_age(aged) -> None:
    log = aged(retention_ms=0, cleanup_policy=frozenset({"compact"}))
    assert log.delete_old_segments(NOW_MS, high_watermark=8) == 0


def test_deleted_segments_leave_no_files(aged) -> None:
    log = aged(retention_ms=0)
    log.delete_old_segments(NOW_MS, high_watermark=8)
    assert [name for name in files_of(log) if not name.startswith(f"{8:020d}")] == [
        "leader-epoch-checkpoint"
    ]


def test_after_everything_was_deleted_offsets_go_on(aged, append, open_log) -> None:
    log = aged(retention_ms=0)
    log.delete_old_segments(NOW_MS, high_watermark=8)
    assert (log.log_start_offset, log.log_end_offset) == (8, 8)
    log.close()
    log = open_log(clean_shutdown=True)
    assert (log.log_start_offset, log.log_end_offset) == (8, 8)
    assert append(log).first_offset == 8


def test_the_log_start_cannot_pass_the_end(aged) -> None:
    log = aged()
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log.advance_log_start_offset(9)
    assert log.advance_log_start_offset(8)
    assert not log.advance_log_start_offset(3)
    assert log.log_start_offset == 8
