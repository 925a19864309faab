"""Storage loses its power, or its process, at random moments, and what was promised is there.

A failure names the command that replays its seed with every step printed.
"""

from __future__ import annotations

import pytest
from support.crash_life import CrashLife
from support.selection import short

LIVES = 500
SOAK_LIVES = 5000
LIVES_PER_TEST = 50


def live(seed: int) -> None:
    try:
        CrashLife(seed).run()
    except Exception as error:
        pytest.fail(
            f"replay this by `python tests/storage/recovery/crash_run.py {seed}`: {error!r}"
        )


@pytest.mark.parametrize("first", short(range(0, LIVES, LIVES_PER_TEST), 1))
def test_what_was_promised_outlives_a_crash(first: int) -> None:
    for seed in range(first, first + LIVES_PER_TEST):
        live(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(LIVES, LIVES + SOAK_LIVES, LIVES_PER_TEST))
def test_what_was_promised_outlives_many_more_crashes(first: int) -> None:
    for seed in range(first, first + LIVES_PER_TEST):
        live(seed)
