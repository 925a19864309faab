"""Descriptors are few: segments beyond the limit let go of their files, and open them again."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from odradek.storage.io.file_slice import FileSlice
from odradek.storage.io.open_files import LIMIT_MAX, LIMIT_MIN, NEVER, OPEN_FILES, OpenFiles
from odradek.tools.simulation.disks.memory_files import MemoryFiles

LIMIT = 8
FILE = MemoryFiles().open("/segment", create=True)


@pytest.fixture
def limit() -> Iterator[int]:
    """So many segments of this process may be open."""
    before = OPEN_FILES.limit
    OPEN_FILES.limit = LIMIT
    yield LIMIT
    OPEN_FILES.limit = before


class Holder:
    """Something that holds a file."""

    def __init__(self) -> None:
        self.is_open = True
        self.was_used = False

    def close(self) -> None:
        self.is_open = False


def test_a_log_of_many_segments_keeps_few_open(limit, open_log, append, read_all):
    log = open_log(segment_bytes=100)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        append(log)
    assert len(log.segments) == 50
    assert sum(segment.is_open for segment in log.segments) <= limit
    assert [record.offset for record in read_all(log)] == list(range(50))
    assert sum(segment.is_open for segment in log.segments) <= limit
    assert len(os.listdir("/proc/self/fd")) <= before + limit
    log.flush_to_disk()
    log.close()


def test_a_slice_stays_readable_when_its_segment_is_closed_for_others(limit, open_log, append):
    log = open_log(segment_bytes=100)
    for _ in range(3 * limit):
        append(log)
    first = log.read(0, 1000).records
    for offset in range(1, log.log_end_offset):
        log.read(offset, 1000)
    assert not log.segments.first.is_open
    assert len(first.read()) == log.segments.first.size


def test_what_was_used_since_the_last_look_stays_open():
    open_files = OpenFiles(3)
    busy, idle, other, last = (Holder() for _ in range(4))
    for holder in (busy, idle, other):
        open_files.opened(holder, FILE)
    open_files.opened(last, FILE)  # all were used: one turn clears the marks, and the first goes
    assert [each.is_open for each in (busy, idle, other, last)] == [False, True, True, True]
    idle.was_used = True
    newest = Holder()
    open_files.opened(newest, FILE)
    assert (idle.is_open, other.is_open) == (True, False)


def test_what_is_gone_or_closed_makes_place():
    open_files = OpenFiles(2)
    kept, closed = Holder(), Holder()
    open_files.opened(closed, FILE)
    open_files.opened(kept, FILE)
    closed.close()
    open_files.opened(Holder(), FILE)
    assert kept.is_open


def test_the_limit_follows_what_the_process_may_open():
    assert LIMIT_MIN <= OpenFiles().limit <= LIMIT_MAX


def test_slices_of_more_files_than_may_be_open_are_read_into_memory(limit, open_log, append):
    """Each slice keeps its file open: an answer of many partitions would take all descriptors."""
    log = open_log(segment_bytes=100)
    for _ in range(4 * limit):
        append(log)
    before = len(os.listdir("/proc/self/fd"))
    lowest_free = os.dup(0)
    os.close(lowest_free)
    OPEN_FILES.scarce_from = lowest_free + 2 * limit
    try:
        answer = [log.read(offset, 1000).records for offset in range(4 * limit)]
        again = log.read(0, 1000).records
    finally:
        OPEN_FILES.scarce_from = NEVER
    in_memory = [records for records in answer if isinstance(records, bytes)]
    assert limit <= len(in_memory) < 4 * limit
    assert len(os.listdir("/proc/self/fd")) <= before + 2 * limit + 2
    sizes = [len(records) for records in answer]
    assert sizes == [segment.size for segment in log.segments]
    assert isinstance(again, FileSlice) or again == answer[0].read()
    assert not OPEN_FILES.is_scarce


def test_idle_segments_are_closed_in_steps_and_used_ones_are_not():
    open_files = OpenFiles(100)
    holders = [Holder() for _ in range(10)]
    for holder in holders:
        open_files.opened(holder, FILE)
    busy = holders[3]
    for _ in range(2):  # all were used before the first look
        open_files.close_unused(5)
    assert all(holder.is_open for holder in holders)
    busy.was_used = True
    open_files.close_unused(5)
    assert [holder.is_open for holder in holders[:5]] == [False, False, False, True, False]
    assert all(holder.is_open for holder in holders[5:])
    open_files.close_unused(5)
    assert [holder for holder in holders if holder.is_open] == [busy]
    open_files.close_unused()
    assert not busy.is_open


def test_idle_partitions_hold_no_descriptors(open_log, append, read_all):
    log = open_log(segment_bytes=100)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        append(log)
    for _ in range(2):
        OPEN_FILES.close_unused()
    assert len(os.listdir("/proc/self/fd")) < before
    append(log)
    assert [record.offset for record in read_all(log)] == list(range(21))
