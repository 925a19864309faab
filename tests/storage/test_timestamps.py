"""Looking up by time."""

from __future__ import annotations

import pytest

from odradek.protocol.compression import Compression
from odradek.protocol.records import build_batch

TIMES = [100, 300, 200, 400, 350, 900, 500, 600, 600, 1000, 950, 1100]


@pytest.fixture(params=[Compression.NONE, Compression.LZ4], ids=["plain", "lz4"])
def log(open_log, append, request):
    """Offsets 0 to 11 with `TIMES`, three records a batch, two batches a segment or so."""
    made = open_log(segment_bytes=210, index_interval_bytes=1)
    for start in range(0, 12, 3):
        records = [(b"k", b"v", time, []) for time in TIMES[start : start + 3]]
        batch = build_batch(records, compression=request.param)
        made.append_as_leader(batch, leader_epoch=start, now_ms=2000)
        made.flush_appends()
    assert len(made.segments) > 1
    return made


def first_not_before(timestamp: int) -> int | None:
    return next((offset for offset, time in enumerate(TIMES) if time >= timestamp), None)


@pytest.mark.parametrize("timestamp", [0, 100, 101, 200, 300, 301, 500, 600, 901, 1000, 1100, 1101])
@pytest.mark.parametrize("fresh", [False, True], ids=["written now", "loaded"])
def test_the_first_record_not_before_a_time_is_found(log, open_log, timestamp, fresh) -> None:
    if fresh:
        log.close()
        log = open_log(clean_shutdown=True)
    found = log.offset_for_timestamp(timestamp)
    expected = first_not_before(timestamp)
    if expected is None:
        assert found is None
    else:
        epoch = expected // 3 * 3
        assert found == (TIMES[expected], expected, epoch)


def test_records_from_the_upper_offset_on_are_not_found(log) -> None:
    assert log.offset_for_timestamp(900, upper_offset=6).offset == 5
    assert log.offset_for_timestamp(900, upper_offset=5) is None


def test_records_before_the_log_start_are_not_found(log) -> None:
    log.advance_log_start_offset(6)
    assert log.offset_for_timestamp(100).offset == 6


def test_the_latest_timestamp_is_found_with_its_first_record(log) -> None:
    assert log.max_timestamp()[:2] == (1100, 11)
    assert log.max_timestamp(upper_offset=11) is None


def test_an_empty_log_has_no_timestamps(open_log) -> None:
    log = open_log()
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() is None


def test_records_without_timestamps_are_never_found(open_log, append) -> None:
    log = open_log()
    append(log, timestamp=-1)
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None


def test_a_truncated_log_forgets_the_times_cut_off(log) -> None:
    log.truncate_to(9)
    assert log.max_timestamp()[:2] == (900, 5)
    assert log.offset_for_timestamp(901) is None
