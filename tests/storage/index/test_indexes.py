"""Offset index and time index by themselves."""

from __future__ import annotations

import pytest

from odradek.storage.errors import CorruptIndexError
from odradek.storage.index.offset_index import OffsetIndex
from odradek.storage.index.time_index import TimeIndex
from odradek.storage.io.files import REAL_FILES


@pytest.fixture
def offsets(tmp_path):
    index = OffsetIndex(REAL_FILES, str(tmp_path / "x.index"), 100, is_new=True)
    for offset, position in ((110, 50), (120, 90), (135, 200)):
        index.append(offset, position)
    return index


@pytest.fixture
def times(tmp_path):
    index = TimeIndex(REAL_FILES, str(tmp_path / "x.timeindex"), 100, is_new=True)
    for timestamp, offset in ((1000, 110), (1000, 120), (900, 125), (2000, 135)):
        index.maybe_append(timestamp, offset)
    return index


@pytest.mark.parametrize(
    ("offset", "position"),
    [(0, 0), (109, 0), (110, 50), (119, 50), (120, 90), (134, 90), (135, 200), (9999, 200)],
)
def test_an_offset_is_looked_up_at_or_before_it(offsets, offset: int, position: int) -> None:
    assert offsets.lookup(offset) == position


@pytest.mark.parametrize(
    ("offset", "left"), [(100, 0), (110, 0), (111, 1), (120, 1), (121, 2), (135, 2), (136, 3)]
)
def test_truncating_drops_entries_from_an_offset_on(offsets, offset: int, left: int) -> None:
    offsets.truncate_to(offset)
    assert len(offsets) == left


def test_the_time_index_notes_only_later_times(times) -> None:
    assert [times.entry(slot)[:2] for slot in range(len(times))] == [(1000, 110), (2000, 135)]


@pytest.mark.parametrize(
    ("timestamp", "entry"),
    [(999, (-1, 100)), (1000, (1000, 110)), (1999, (1000, 110)), (5000, (2000, 135))],
)
def test_a_time_is_looked_up_at_or_before_it(times, timestamp: int, entry) -> None:
    assert times.lookup(timestamp)[:2] == entry


def test_the_time_index_is_truncated_by_offset(times) -> None:
    times.truncate_to(135)
    assert times.last_entry()[:2] == (1000, 110)
    times.truncate_to(110)
    assert times.last_entry()[:2] == (-1, 100)


def test_the_files_are_in_kafkas_format(offsets, times) -> None:
    offsets.flush()
    times.flush()
    assert REAL_FILES.read_bytes(offsets.path).hex(" ", 4) == (
        "0000000a 00000032 00000014 0000005a 00000023 000000c8"
    )
    assert REAL_FILES.read_bytes(times.path).hex(" ", 4) == (
        "00000000 000003e8 0000000a 00000000 000007d0 00000023"
    )


def test_entries_are_appended_and_cut_in_the_file_too(offsets, tmp_path) -> None:
    def reread() -> list[tuple[int, int]]:
        index = OffsetIndex(REAL_FILES, offsets.path, 100, is_new=False)
        return [index.entry(slot) for slot in range(len(index))]

    offsets.flush()
    offsets.append(150, 300)
    offsets.flush()
    assert reread() == [(110, 50), (120, 90), (135, 200), (150, 300)]
    offsets.truncate_to(130)
    offsets.flush()
    assert reread() == [(110, 50), (120, 90)]
    for offset in (131, 132, 133):
        offsets.append(offset, offset)
    offsets.flush()
    assert reread() == [(110, 50), (120, 90), (131, 131), (132, 132), (133, 133)]
    offsets.reset()
    offsets.flush()
    assert reread() == []


@pytest.mark.parametrize("tail", [b"\x01", bytes(7), bytes(8001)])
def test_a_file_that_ends_inside_an_entry_is_refused(offsets, tail: bytes) -> None:
    offsets.flush()
    with open(offsets.path, "ab") as file:
        file.write(tail)
    index = OffsetIndex(REAL_FILES, offsets.path, 100, is_new=False)
    with pytest.raises(CorruptIndexError, match="ends inside an entry"):
        len(index)


def test_a_last_entry_from_before_the_segment_is_refused(offsets) -> None:
    offsets.flush()
    with open(offsets.path, "ab") as file:
        file.write(b"\xff\xff\xff\xff\0\0\0\1")
    with pytest.raises(CorruptIndexError, match="ends with the entry"):
        len(OffsetIndex(REAL_FILES, offsets.path, 100, is_new=False))


@pytest.mark.parametrize("tail", [bytes(8), bytes(8000)])
def test_zeros_at_the_end_do_not_count(offsets, tail: bytes) -> None:
    offsets.flush()
    with open(offsets.path, "ab") as file:
        file.write(tail)
    index = OffsetIndex(REAL_FILES, offsets.path, 100, is_new=False)
    assert len(index) == 3
    assert index.lookup(9999) == 200
    index.append(150, 300)
    index.flush()
    again = OffsetIndex(REAL_FILES, offsets.path, 100, is_new=False)
    assert [again.entry(slot)[0] for slot in range(len(again))] == [110, 120, 135, 150]
