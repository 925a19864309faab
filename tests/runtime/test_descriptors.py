"""What the descriptors of a process are for, and what it says of them at the start."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from odradek.runtime.descriptors import (
    CONNECTIONS_MIN,
    RESERVE_MAX,
    SEGMENTS_MAX,
    count_open,
    plan_descriptors,
)


@pytest.mark.parametrize("limit", [128, 256, 1024, 4096, 65_536, 1 << 20])
def test_all_that_is_planned_fits_into_the_limit(limit: int) -> None:
    plan = plan_descriptors(limit, used=20)
    assert plan.used + plan.reserve + plan.segments + plan.connections == limit
    assert plan.connections >= plan.segments
    assert plan.segments <= SEGMENTS_MAX
    assert 16 <= plan.reserve <= RESERVE_MAX
    assert limit - plan.reserve < plan.scarce_from < limit


def test_a_limit_that_is_too_low_leaves_a_few_connections() -> None:
    assert plan_descriptors(32, used=30).connections == CONNECTIONS_MIN


def test_open_descriptors_are_counted() -> None:
    before = count_open()
    held = [os.dup(0) for _ in range(3)]
    assert count_open() == before + 3
    for each in held:
        os.close(each)
    assert count_open() == before


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    code = (
        "from odradek.runtime.descriptors import current_limit, raise_limit\n"
        "print(*raise_limit(), current_limit())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 300)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["64", "300", "300"]
