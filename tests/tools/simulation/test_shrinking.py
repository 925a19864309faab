"""A run that fails is made smaller, and fails still."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.common.errors import ErrorCode
from odradek.replication.partition.partition import Partition
from odradek.tools.simulation.checkers.invariants import InvariantBroken
from odradek.tools.simulation.mix import LOGS
from odradek.tools.simulation.runs import Run, run, shrink

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _silent_logs() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_a_smaller_run_fails_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def has_replicated(partition: Partition, required_offset: int) -> tuple[bool, ErrorCode]:
        return True, ErrorCode.NONE

    monkeypatch.setattr(Partition, "has_replicated", has_replicated)
    found = Run(0, LOGS, 20)
    smaller = shrink(found)
    assert smaller.seconds < found.seconds
    assert Run.parse(str(smaller)) == smaller
    with pytest.raises(InvariantBroken):
        run(smaller)


def test_a_run_that_does_not_fail_is_not_made_smaller() -> None:
    with pytest.raises(ValueError, match="does not fail"):
        shrink(Run(0, LOGS, 1))
