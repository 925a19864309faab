"""What the tests of the seeded simulators ask of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from odradek.tools.simulation.checkers.invariants import InvariantBroken
from odradek.tools.simulation.runs import Run, run

Break = Callable[[pytest.MonkeyPatch], None]
"""Breaks the product on purpose."""


def first_seed_that_fails(
    run_seed: Callable[[int], object], broken: type[Exception], seeds: int
) -> int:
    """The first of so many seeds whose run breaks an invariant. Raises AssertionError."""
    for seed in range(seeds):
        try:
            run_seed(seed)
        except broken:
            return seed
    raise AssertionError(f"{seeds} seeds found nothing")


def first_run_that_fails(first: Run, seeds: int) -> Run:
    """The first of so many runs, of this seed and those behind it, that breaks an invariant.

    Raises AssertionError.
    """
    for seed in range(first.seed, first.seed + seeds):
        what = first._replace(seed=seed)
        try:
            run(what)
        except InvariantBroken:
            return what
    raise AssertionError(f"{seeds} seeds from {first.seed} on found nothing")


def require_same_trace(module: str, *arguments: str) -> None:
    """A replay prints the same in every process, whatever the hashes of strings are there."""
    path = os.environ.get("PYTHONPATH", "")
    traces = [
        subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env={"PYTHONHASHSEED": number, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    ]
    assert len(traces[0].splitlines()) > 20
    assert len({hashlib.sha256(trace).digest() for trace in traces}) == 1
