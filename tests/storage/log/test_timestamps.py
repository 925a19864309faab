"""Looking up by time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch
from odradek.storage import Log
from odradek.storage.io.files import REAL_FILES

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


def test_records_without_timestamps_are_found_by_no_time(open_log, append) -> None:
    log = open_log()
    append(log, timestamp=-1)
    append(log, timestamp=-1)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp()[:2] == (-1, 0)  # Kafka 4.3.1 answers the first of them


def test_the_latest_timestamp_may_lie_before_the_log_start(log) -> None:
    log.truncate_to(9)
    log.advance_log_start_offset(7)
    assert log.max_timestamp()[:2] == (900, 5)  # as Kafka 4.3.1 answers it
    assert log.offset_for_timestamp(601) is None


def test_the_first_of_several_equal_latest_timestamps_is_found(open_log, append) -> None:
    log = open_log(segment_bytes=100)
    for timestamp in (5, 9, 9, 7):
        append(log, timestamp=timestamp)
    assert len(log.segments) == 4
    assert log.max_timestamp()[:2] == (9, 1)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_times_are_found_after_old_segments_are_gone(open_log, append, count: int) -> None:
    log = open_log(segment_bytes=100)
    times = [50, 10, 90, 30, 70, 20, 60, 80]
    for timestamp in times:
        append(log, timestamp=timestamp)
    assert log.offset_for_timestamp(60).offset == 2
    log.segments.remove_first(count)
    log.log_start_offset = count
    for requested in (1, 15, 25, 55, 65, 75, 85, 95):
        left = list(enumerate(times))[count:]
        expected = next((offset for offset, time in left if time >= requested), None)
        found = log.offset_for_timestamp(requested)
        assert (None if found is None else found.offset) == expected
    latest = max(times[count:])
    assert log.max_timestamp()[:2] == (latest, times.index(latest))


def test_a_truncated_log_forgets_the_times_cut_off(log) -> None:
    log.truncate_to(9)
    assert log.max_timestamp()[:2] == (900, 5)
    assert log.offset_for_timestamp(901) is None


class CountingFiles:
    """The real file system, with a list of the files that were read whole."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def read_bytes(self, path: str) -> bytes:
        self.read.append(path)
        return REAL_FILES.read_bytes(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL_FILES, name)


@pytest.fixture
def long_log(open_log, append):
    """Twenty segments of four batches, ten seconds apart; closed."""
    log = open_log(segment_bytes=4 * 80, index_interval_bytes=1)
    for number in range(80):
        append(log, timestamp=10_000 * number)
    assert len(log.segments) == 20
    log.close()
    return log


def test_a_time_is_found_without_reading_the_indexes_of_other_segments(long_log, open_log) -> None:
    files = CountingFiles()
    log = open_log(files=files, clean_shutdown=True)
    files.read.clear()
    assert log.offset_for_timestamp(10_000 * 30 + 1).offset == 31
    stem = f"{28:020d}"
    assert {Path(path).stem for path in files.read if "index" in path} == {stem}


def flip_last_timestamp(log: Log, to: int) -> None:
    """Every closed segment's time index ends with another time than its batches have."""
    for path in Path(log.directory).glob("*.timeindex"):
        entries = bytearray(path.read_bytes())
        entries[-12:-4] = to.to_bytes(8, "big")
        path.write_bytes(entries)


@pytest.mark.parametrize("wrong", [1, 10**15])
def test_a_wrong_last_time_of_an_index_hides_no_segment(long_log, open_log, wrong: int) -> None:
    flip_last_timestamp(long_log, wrong)
    log = open_log(clean_shutdown=True)
    for offset in (0, 3, 31, 66, 79):
        assert log.offset_for_timestamp(10_000 * offset).offset == offset
