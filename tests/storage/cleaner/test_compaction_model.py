"""Random lives of a compacted log against what was written: nothing that counts is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacted_life import STEPS, CompactedLife
from support.selection import short


@pytest.mark.parametrize("seed", short(range(25), 8))
def test_a_compacted_log_keeps_the_latest_of_each_key_through_all_it_lives(
    tmp_path: Path, seed: int
) -> None:
    life = CompactedLife(tmp_path, seed)
    for _ in range(STEPS):
        life.step()
        life.check()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_thousand_lives_of_compacted_logs(tmp_path: Path) -> None:
    for seed in range(25, 2025):
        life = CompactedLife(tmp_path / str(seed), seed)
        for _ in range(STEPS):
            life.step()
            life.check()
