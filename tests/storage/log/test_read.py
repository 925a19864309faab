"""Reading by offset: where slices begin and end."""

from __future__ import annotations

import os

import pytest

from odradek.common.errors import KafkaError
from odradek.protocol.records import iter_batches
from odradek.storage import FileSlice, StorageError


@pytest.fixture
def log(open_log, append):
    """Twenty batches of two records each, in several segments, with a dense index."""
    made = open_log(segment_bytes=400, index_interval_bytes=1)
    for number in range(20):
        append(made, b"%02d" % number, b"second")
    assert len(made.segments) > 3
    return made


def base_offsets(read) -> list[int]:
    data = read.records if isinstance(read.records, bytes) else read.records.read()
    return [batch.base_offset for batch in iter_batches(data)]


@pytest.mark.parametrize("fresh", [False, True], ids=["remembered", "looked up"])
def test_a_read_begins_with_the_batch_that_holds_the_offset(log, open_log, fresh) -> None:
    if fresh:
        log.close()
        log = open_log(clean_shutdown=True, segment_bytes=400, index_interval_bytes=1)
    for offset in range(40):
        assert base_offsets(log.read(offset, 1))[0] == offset // 2 * 2


def test_a_read_ends_with_its_segment(log) -> None:
    first = base_offsets(log.read(0, 1 << 20))
    second = base_offsets(log.read(first[-1] + 2, 1 << 20))
    assert first == list(range(0, log.segments[1].base_offset, 2))
    assert second[0] == log.segments[1].base_offset


def test_a_read_is_cut_at_its_size_even_inside_a_batch(log) -> None:
    batch_bytes = log.segments.first.batch_size_at(0)
    assert len(log.read(0, batch_bytes + 10).records) == batch_bytes + 10
    assert base_offsets(log.read(0, batch_bytes + 10)) == [0]


def test_the_first_batch_is_whole_or_there_is_none(log) -> None:
    batch_bytes = log.segments.first.batch_size_at(0)
    for max_bytes in (0, 1, batch_bytes - 1):
        assert len(log.read(0, max_bytes).records) == batch_bytes
        assert len(log.read(0, max_bytes, minimum_one_batch=False).records) == 0
    assert len(log.read(0, batch_bytes, minimum_one_batch=False).records) == batch_bytes


@pytest.mark.parametrize("upper_offset", range(41))
def test_no_batch_that_reaches_the_upper_offset_is_read(log, upper_offset: int) -> None:
    seen = []
    offset = 0
    while bases := base_offsets(log.read(offset, 1 << 20, upper_offset=upper_offset)):
        seen += bases
        offset = bases[-1] + 2
    assert seen == [base for base in range(0, 40, 2) if base + 1 < upper_offset]


def test_the_end_of_the_log_reads_as_nothing(log) -> None:
    assert len(log.read(40, 1 << 20).records) == 0


@pytest.mark.parametrize("offset", [-1, 41, 2**62])
def test_offsets_outside_of_the_log_are_refused(log, offset: int) -> None:
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log.read(offset, 1)


def test_offsets_before_the_start_of_the_log_are_refused(log) -> None:
    log.advance_log_start_offset(7)
    assert base_offsets(log.read(7, 1)) == [6]
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log.read(6, 1)


def test_a_gap_in_the_offsets_reads_on_behind_it(open_log, append) -> None:
    from odradek.protocol.records import build_batch

    log = open_log(segment_bytes=80)
    for offset in (0, 5, 9):
        log.append_as_follower(build_batch([(b"k", b"v", 0, [])], base_offset=offset))
        log.flush_appends()
    assert len(log.segments) == 3
    assert [base_offsets(log.read(offset, 1))[0] for offset in (0, 1, 4, 5, 6, 9)] == [
        0, 5, 5, 5, 9, 9,
    ]  # fmt: skip


def test_a_slice_can_be_sent_by_descriptor_and_position(log) -> None:
    records = log.read(2, 1 << 20).records
    assert os.pread(records.fileno(), len(records), records.position) == records.read()


def test_a_slice_outlives_its_segment(log) -> None:
    read = log.read(0, 1 << 20)
    before = read.records.read()
    log.advance_log_start_offset(40)
    log.delete_old_segments(now_ms=0, high_watermark=40)
    assert log.segments.first.base_offset > 0
    assert read.records.read() == before


def test_a_file_is_closed_with_its_last_reference(log) -> None:
    read = log.read(0, 1 << 20)
    descriptor = read.records.fileno()
    log.close()
    os.fstat(descriptor)
    del read
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_slice_of_a_file_that_lost_its_end_is_refused(log) -> None:
    records = log.read(0, 1 << 20).records
    with pytest.raises(StorageError):
        FileSlice(records.file, records.position, 10_000).read()
