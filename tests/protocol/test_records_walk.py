"""The fast walk over a batch's lengths agrees with the plain one, whatever the bytes are."""

from __future__ import annotations

import random
import time
import timeit
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.selection import short

from odradek.protocol.records import BATCH_HEADER_BYTES
from odradek.protocol.records.layouts import (
    LAYOUTS_MAX,
    RECORDS_MAX,
    RECORDS_MIN,
    WALKS_MIN,
    RecordLayouts,
)
from odradek.protocol.records.walk import ALIKE_RECORDS, RECORDS_APART, lengths_add_up

RECORD_BYTES_MIN = 6
LENGTH_BYTES_MAX = 5

Buffer = bytes | bytearray | memoryview


def add_up_plainly(buffer: bytes, position: int, end: int, count: int) -> bool:
    """One record after the other, a byte at a time: what the walk has to prove."""
    for _ in range(count):
        if position >= end:
            return False
        raw = 0
        for index in range(LENGTH_BYTES_MAX):
            if position >= len(buffer):
                return False
            byte = buffer[position]
            position += 1
            raw |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                break
        else:
            return False
        if raw % 2 or raw // 2 < RECORD_BYTES_MIN:
            return False
        position += raw // 2
    return position == end


def record(size: int, length_bytes: int = 1, filler: int = 0) -> bytes:
    """A record of `size` bytes behind its length, which takes `length_bytes` or as many as it
    must."""
    raw, length = size << 1, bytearray()
    while raw > 0x7F or len(length) + 1 < length_bytes:
        length.append(raw & 0x7F | 0x80)
        raw >>= 7
    length.append(raw)
    return bytes(length) + bytes([filler]) * size


RUNS = st.lists(
    st.tuples(
        st.sampled_from([6, 7, 8, 62, 63, 64, 65, 127, 128, 140, 8191, 8192]),
        st.integers(1, 3),  # bytes of its length, of which some are needless
        st.sampled_from([0, 12, 0x0C, 0x80, 0xFF]),  # what a record is made of looks like a length
        st.sampled_from([1, 1, 2, 5, 6, 7, 8, 20, ALIKE_RECORDS, ALIKE_RECORDS + 1, 200]),
    ),
    max_size=6,
)


def built(runs: list[tuple[int, int, int, int]]) -> tuple[bytearray, int]:
    parts = [record(size, width, filler) * times for size, width, filler, times in runs]
    return bytearray(b"".join(parts)), sum(times for *_, times in runs)


@given(RUNS, st.integers(0, 80))
@settings(max_examples=150, deadline=None)
def test_lengths_of_records_of_one_size_add_up(
    runs: list[tuple[int, int, int, int]], at: int
) -> None:
    data, count = built(runs)
    buffer = bytes(at) + data
    for kind in (bytes, bytearray, memoryview):
        assert lengths_add_up(kind(buffer), at, len(buffer), count)
    for wrong in (count - 1, count + 1):
        assert not lengths_add_up(buffer, at, len(buffer), wrong) or wrong < 0
    assert not data or not lengths_add_up(buffer, at, len(buffer) - 1, count)
    assert not lengths_add_up(buffer + b"\x0c" + bytes(6), at, len(buffer) + 7, count)


@given(
    RUNS,
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(-2, 2),
    st.integers(-20, 20),
    st.integers(0, 20),
)
@settings(max_examples=400, deadline=None)
def test_damaged_records_are_judged_as_by_the_plain_walk(
    runs: list[tuple[int, int, int, int]],
    damages: list[tuple[int, int]],
    miscounted: int,
    moved_end: int,
    cut: int,
) -> None:
    data, count = built(runs)
    for where, byte in damages:
        if data:
            data[where % len(data)] = byte
    end = len(data) + min(moved_end, 0)
    for buffer in (data, data[: len(data) - cut]):  # the end may lie behind the bytes
        for number in (count, count + miscounted):
            found = lengths_add_up(memoryview(buffer), 0, end, number)
            assert found == add_up_plainly(bytes(buffer), 0, end, number)


@given(st.binary(max_size=600), st.integers(-3, 90), st.integers(0, 40), st.integers(0, 700))
@example(b"\x0c" * 700, 100, 0, 700)
@example(bytes(700), 100, 0, 700)
@example(b"\x80" * 700, 100, 0, 700)
@example(b"\xff" * 700, 100, 0, 700)
@settings(max_examples=400, deadline=None)
def test_any_bytes_are_judged_as_by_the_plain_walk(
    data: bytes, count: int, start: int, end: int
) -> None:
    expected = add_up_plainly(data, start, end, count)
    assert lengths_add_up(memoryview(data), start, end, count) == expected


@pytest.mark.parametrize("at", [1, 5, 7, ALIKE_RECORDS, ALIKE_RECORDS + RECORDS_APART, 250, 299])
@pytest.mark.parametrize("size", [50, 100])
def test_one_length_that_differs_in_a_long_run_is_found(size: int, at: int) -> None:
    one = record(size)
    good = bytearray(one * 300)
    assert lengths_add_up(good, 0, len(good), 300)
    for byte in range(len(one) - size):
        damaged = bytearray(good)
        damaged[at * len(one) + byte] ^= 2
        assert not lengths_add_up(damaged, 0, len(damaged), 300)


@pytest.mark.parametrize("period", [1, 2, 3, 7, 17, 33])
def test_sizes_that_deceive_the_walk_cost_little_more_than_others(period: int) -> None:
    def seconds(data: bytes) -> float:
        walk = partial(lengths_add_up, memoryview(data), 0, len(data), count)
        return min(timeit.repeat(walk, timer=time.process_time, number=5, repeat=5))

    count = 4000
    honest = b"".join(record(70 + number * 37 % 50) for number in range(count))
    deceiving = b"".join(record(70 + number // period % 2) for number in range(count))
    assert seconds(deceiving) < 4 * seconds(honest)


def batch_of(sizes: list[int]) -> bytearray:
    return bytearray(BATCH_HEADER_BYTES) + b"".join(record(size) for size in sizes)


@pytest.mark.parametrize("seed", short(range(20), 8))
def test_what_layouts_remember_never_passes_other_records(seed: int) -> None:
    rng = random.Random(seed)
    layouts = RecordLayouts()
    forms = []
    for _ in range(3):
        sizes = [rng.choice([6, 63, 64, 70, 8191, 8192]) for _ in range(rng.randint(4, 12))]
        forms += [sizes, rng.sample(sizes, len(sizes))]  # of the same size and count
    for _ in range(300):
        sizes = rng.choice(forms)
        batch, count = batch_of(sizes), len(sizes)
        if rng.random() < 0.5:
            begins = BATCH_HEADER_BYTES
            for size in rng.sample(sizes, rng.randrange(count)):
                begins += len(record(size))
            where = min(begins + rng.choice([0, 0, 1, 2, 5]), len(batch) - 1)
            batch[where] = rng.choice([batch[where] ^ 0x80, batch[where] ^ 2, 0, 12, 0xFF])
        if rng.random() < 0.1:
            count += rng.choice([-1, 1, 256, -300])
        if rng.random() < 0.1:
            del batch[-rng.randint(1, len(batch)) :]
        expected = add_up_plainly(bytes(batch), BATCH_HEADER_BYTES, len(batch), count)
        assert layouts.lengths_add_up(memoryview(batch), count) == expected


@pytest.mark.parametrize("count", [RECORDS_MIN - 1, RECORDS_MIN, RECORDS_MAX, RECORDS_MAX + 1])
def test_a_batch_that_comes_again_is_checked_again(count: int) -> None:
    layouts = RecordLayouts()
    batch = batch_of([100] * (count - 1) + [101])
    for _ in range(3 * WALKS_MIN):
        assert layouts.lengths_add_up(batch, count)
        assert not layouts.lengths_add_up(batch, count - 1)
        assert not layouts.lengths_add_up(batch, count + 1)
    batch[BATCH_HEADER_BYTES + 1] ^= 1
    assert not layouts.lengths_add_up(batch, count)


def test_layouts_of_more_forms_than_are_remembered_are_checked_all_the_same() -> None:
    layouts = RecordLayouts()
    forms = [batch_of([6 + more] * 8) for more in range(2 * LAYOUTS_MAX)]
    for _ in range(WALKS_MIN + 1):
        for batch in forms:
            assert all(layouts.lengths_add_up(batch, 8) for _ in range(WALKS_MIN))
            assert not layouts.lengths_add_up(batch[:-1], 8)
    assert len(layouts) <= LAYOUTS_MAX


@pytest.mark.parametrize("first", [0, 0x0C, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF])
def test_a_batch_of_one_record_is_judged_as_by_the_plain_walk(first: int) -> None:
    """Of every size up to where its length takes three bytes, and around what two can say."""
    layouts = RecordLayouts()
    sizes = {*range(200), *range(8100, 8400), 16_383, 16_384, 16_385, 16_500, 40_000}
    taken = 0
    for size in sorted(sizes):
        end = BATCH_HEADER_BYTES + size
        for length in (size - 1, size - 2, size - 3):
            encoded = record(max(length, 0), 1)[: max(size - max(length, 0), 0)]
            for tail in (encoded, encoded[:-1] + b"\x82", bytes([first])):
                batch = bytearray(end)
                batch[BATCH_HEADER_BYTES : BATCH_HEADER_BYTES + len(tail)] = tail
                batch = batch[:end]
                whole = add_up_plainly(batch, BATCH_HEADER_BYTES, end, 1)
                assert layouts.lengths_add_up(memoryview(batch), 1) == whole, (size, length, tail)
                taken += whole
    assert taken > 300
