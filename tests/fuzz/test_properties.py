"""Whatever bytes hypothesis thinks of: a target takes them, or refuses them in the one way."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fuzz_inputs import hostile_inputs, seeds_of
from support.fuzz_targets import REFUSALS, TARGETS, frames_of


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    """An input that was well-formed, with some of its bytes replaced by others."""
    data = bytearray(draw(st.sampled_from(seeds_of(name))))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 8)))
        data[start:stop] = draw(st.binary(max_size=8))
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_any_bytes_are_taken_or_refused(name: str, data: st.DataObject) -> None:
    hostile = data.draw(st.binary(max_size=200) | damaged(name))
    with suppress(*REFUSALS):
        TARGETS[name](hostile)


@settings(deadline=None)
@given(hostile=st.binary(max_size=100) | damaged("frames"), pieces=st.integers(1, 50))
def test_bytes_one_at_a_time_are_the_same_frames_and_the_same_failure(
    hostile: bytes, pieces: int
) -> None:
    whole = frames_of(hostile, max(len(hostile), 1))
    assert frames_of(hostile, 1) == whole
    assert frames_of(hostile, pieces) == whole


@pytest.mark.parametrize("name", TARGETS)
def test_the_same_seed_makes_the_same_inputs(name: str) -> None:
    first, second = hostile_inputs(name, 3), hostile_inputs(name, 3)
    made = [next(first) for _ in range(50)]
    assert made == [next(second) for _ in range(50)]
    assert len(set(made)) > 40


@pytest.mark.parametrize("name", TARGETS)
def test_some_damaged_inputs_are_taken_and_some_are_refused(name: str) -> None:
    """Otherwise they would reach little of the code."""
    taken = refused = 0
    inputs = hostile_inputs(name, 4)
    for _ in range(300):
        try:
            TARGETS[name](next(inputs))
            taken += 1
        except REFUSALS:
            refused += 1
    assert taken > 60
    assert refused > 60 or name == "frames"  # Whose refusals are results.
