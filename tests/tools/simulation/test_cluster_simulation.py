"""Whole clusters from seeds: whatever happens, what is promised holds."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.selection import short
from support.simulation import require_same_trace

from odradek.tools.simulation.mix import IDLE
from odradek.tools.simulation.runs import Report, Run, run

SEEDS = 10
SEEDS_AT_A_TIME = 2
SEEDS_SOAK = 5_000
REGRESSIONS = Path(__file__).parent / "data" / "regressions.txt"


@pytest.fixture(autouse=True)
def _silent_logs() -> Iterator[None]:
    """Brokers in trouble say so, a thousand times. Errors are looked at."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def regressions() -> list[str]:
    """Runs that found something once, a line each."""
    lines = REGRESSIONS.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("first", short(range(0, SEEDS, SEEDS_AT_A_TIME), 1))
def test_whatever_happens_what_is_promised_holds(first: int) -> None:
    total = Report()
    for seed in range(first, first + SEEDS_AT_A_TIME):
        total.add(run(Run(seed)))
    # A simulation in which little happens proves little.
    assert total.acknowledged > 50 * SEEDS_AT_A_TIME
    assert total.faults.total() > 8 * SEEDS_AT_A_TIME
    assert total.elections > SEEDS_AT_A_TIME
    assert total.rests >= SEEDS_AT_A_TIME


@pytest.mark.parametrize("line", short(regressions(), 0))
def test_what_was_found_is_mended(line: str) -> None:
    run(Run.parse(line))


def test_half_an_hour_of_three_idle_brokers() -> None:
    report = run(Run(1, IDLE, 1800))
    assert report.acknowledged > 20
    assert report.elections == 1


@pytest.mark.soak
@pytest.mark.timeout(36_000)
def test_thousands_of_seeds() -> None:
    for seed in range(1_000_000, 1_000_000 + SEEDS_SOAK):
        run(Run(seed, seconds=600 if seed % 20 == 0 else 40))


def test_a_seed_replays_the_same_in_every_process() -> None:
    require_same_trace("odradek.tools.simulation", "--seed", "7", "--seconds", "5")
