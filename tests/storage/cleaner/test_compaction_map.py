"""The map from keys to offsets: a fixed room, and no key mistaken for another."""

from __future__ import annotations

import random

import pytest

from odradek.storage.cleaner.offset_map import ENTRY_BYTES, OffsetMap


@pytest.mark.parametrize("slots", [3, 4, 10, 100, 1000])
@pytest.mark.parametrize("load_factor", [0.5, 0.9, 1.0])
def test_every_key_is_found_up_to_the_limit(slots: int, load_factor: float) -> None:
    offset_map = OffsetMap(slots * ENTRY_BYTES, load_factor)
    assert 1 <= offset_map.capacity <= slots * load_factor
    assert offset_map.capacity >= slots * load_factor * 0.6 - 1
    source = random.Random(slots)
    expected: dict[bytes, int] = {}
    offset = 0
    while not offset_map.is_full:
        offset += 1
        key = source.randbytes(source.randint(0, 3))
        offset_map.put(key, offset)
        expected[key] = offset
    assert offset_map.size == len(expected) == offset_map.capacity
    assert all(offset_map.get(key) == at for key, at in expected.items())
    assert all(offset_map.get(b"not %d" % number) == -1 for number in range(200))
    with pytest.raises(ValueError, match="takes no more"):
        offset_map.put(b"one more", 1)


def test_the_latest_offset_of_a_key_counts() -> None:
    offset_map = OffsetMap(10 * ENTRY_BYTES)
    offset_map.put(b"a", 0)
    offset_map.put(b"b", 5)
    offset_map.put(b"a", 7)
    assert (offset_map.get(b"a"), offset_map.get(b"b"), offset_map.size) == (7, 5, 2)
    assert offset_map.latest_offset == 7


def test_keys_take_the_same_room_whatever_their_length() -> None:
    offset_map = OffsetMap(10 * ENTRY_BYTES)
    for length in (0, 1, 100_000):
        offset_map.put(bytes(length), length)
    assert [offset_map.get(bytes(length)) for length in (0, 1, 100_000)] == [0, 1, 100_000]


def test_views_are_keys_as_well() -> None:
    offset_map = OffsetMap(10 * ENTRY_BYTES)
    offset_map.put(memoryview(b"some key")[5:], 3)
    assert offset_map.get(b"key") == 3


def test_it_takes_no_more_memory_than_allowed_and_no_more_than_needed() -> None:
    for memory_bytes, keys_max in ((10_000, None), (10_000, 10**9), (10**9, 50)):
        made = OffsetMap(memory_bytes, 0.9, keys_max)
        held = sum(
            table.itemsize * len(table)
            for table in (made._offsets, made._hashes_low, made._hashes_high)
        )
        assert held <= memory_bytes
    assert held < 3000
    assert made.capacity >= 50


@pytest.mark.parametrize(("memory_bytes", "load_factor"), [(0, 0.9), (71, 1.0), (72, 0.3)])
def test_a_room_for_no_key_is_refused(memory_bytes: int, load_factor: float) -> None:
    with pytest.raises(ValueError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        OffsetMap(memory_bytes, load_factor)
