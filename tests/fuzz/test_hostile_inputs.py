"""A hundred thousand hostile inputs: a few hundred of them in `make test`, a fifth in
`make test-all`, and a hundred times as many in `make soak`.

Of each the processor time and the memory that Python allocates are measured, and of the whole
run the memory that the process has in RAM, since codecs do not allocate through Python.
"""

from __future__ import annotations

import gc
import resource
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from support.fuzz_inputs import hostile_inputs, seeds_of
from support.fuzz_targets import TARGETS, spend

INPUTS = {
    "requests": 45_000,
    "responses": 15_000,
    "round_trip": 10_000,
    "frames": 5_000,
    "internal": 5_000,
    "records": 10_000,
    "decompression": 10_000,
}
SOAK_TIMES = 100
RESIDENT_GROWTH_BYTES_MAX = 32 << 20
CORPUS = Path(__file__).parent / "corpus"


def resident_bytes_max() -> int:
    """The most memory that this process has had in RAM."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.fixture
def measuring() -> Iterator[None]:
    """What was there before is no matter of the garbage collector's, nor of the measure."""
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def require_harmless(name: str, inputs: Iterator[bytes]) -> None:
    """Have a target take each input; the first that costs too much, or more, fails the test."""
    target = TARGETS[name]
    for seed in seeds_of(name):  # Codecs are generated at first use.
        spend(target, seed)
    resident_before = resident_bytes_max()
    for data in inputs:
        try:
            spent = spend(target, data)
            if spent.is_too_much:
                spent = spend(target, data)  # Something may have been made at first use.
        except Exception as error:
            pytest.fail(f"{name}: {error!r} from {data.hex()}")
        assert not spent.is_too_much, f"{name}: {spent} for {data.hex()}"
    grown = resident_bytes_max() - resident_before
    assert grown <= RESIDENT_GROWTH_BYTES_MAX, f"{name}: {grown / 1e6:.0f} MB more in RAM"


def test_a_hundred_thousand_inputs_are_many() -> None:
    assert sum(INPUTS.values()) == 100_000
    assert INPUTS.keys() == TARGETS.keys()


@pytest.mark.usefixtures("measuring")
@pytest.mark.parametrize("part", [300, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs_are_refused_or_read_within_their_means(name: str, part: int) -> None:
    require_harmless(name, islice(hostile_inputs(name, seed=1), INPUTS[name] // part))


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("measuring")
@pytest.mark.parametrize("name", TARGETS)
def test_ten_million_hostile_inputs_are_refused_or_read_within_their_means(name: str) -> None:
    require_harmless(name, islice(hostile_inputs(name, seed=2), SOAK_TIMES * INPUTS[name]))


@pytest.mark.usefixtures("measuring")
@pytest.mark.parametrize("name", TARGETS)
def test_inputs_that_once_found_something_are_harmless(name: str) -> None:
    found = sorted((CORPUS / name).glob("*"))
    require_harmless(name, (path.read_bytes() for path in found))
