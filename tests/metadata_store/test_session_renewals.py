"""Sessions of processes whose clocks agree on nothing: seeded runs of the part that decides."""

from __future__ import annotations

import random

import pytest
from support.selection import short

from odradek.metadata_store.embedded.session_renewals import SessionRenewals, SessionRow

TIMEOUT_MS = 18_000
RENEW_MS = TIMEOUT_MS // 3
POLL_MS = 100
RUN_MS = 240_000
DRIFT = 0.05
"""By how much a clock runs fast or slow: far more than any does."""


class Machine:
    """The processes, the store that they share, and the true time."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.renewals: dict[int, int] = {}
        self.processes = [Process(self, number) for number in range(3)]

    def run_until(self, end_ms: int) -> None:
        while self.now_ms < end_ms:
            self.now_ms += POLL_MS
            for process in self.rng.sample(self.processes, len(self.processes)):
                process.poll()

    def suspend(self, milliseconds: int) -> None:
        """Nothing runs, while the clocks go on."""
        self.now_ms += milliseconds


class Process:
    """One session's holder, which observes the others; its clock began anywhere, and drifts."""

    def __init__(self, machine: Machine, number: int) -> None:
        self._machine = machine
        self._number = number
        self._origin_ms = machine.rng.randrange(10**12)
        self._rate = 1 + machine.rng.uniform(-DRIFT, DRIFT)
        self._renewals = SessionRenewals(RENEW_MS)
        self._renew_at_ms = 0.0
        self.frozen_since_ms: int | None = None
        machine.renewals[number] = 0

    def poll(self) -> None:
        if self.frozen_since_ms is not None:
            return
        machine = self._machine
        now_ms = int(self._origin_ms + machine.now_ms * self._rate)
        if now_ms >= self._renew_at_ms and self._number in machine.renewals:
            machine.renewals[self._number] += 1
            self._renew_at_ms = now_ms + RENEW_MS
        others = {
            number: SessionRow(TIMEOUT_MS, renewals)
            for number, renewals in machine.renewals.items()
            if number != self._number
        }
        for number in self._renewals.overdue(others, now_ms):
            del machine.renewals[number]


@pytest.mark.parametrize("seed", short(range(30), 12))
def test_only_who_is_frozen_loses_its_session_and_in_time(seed: int) -> None:
    machine = Machine(seed)
    rng = machine.rng
    for _ in range(6):
        machine.run_until(machine.now_ms + rng.randrange(RUN_MS // 6))
        machine.suspend(rng.choice([0, 1_000, 3_600_000]))
        assert set(machine.renewals) == {0, 1, 2}
    machine.run_until(machine.now_ms + TIMEOUT_MS)
    frozen = rng.randrange(3)
    machine.processes[frozen].frozen_since_ms = machine.now_ms
    frozen_at_ms = machine.now_ms
    renewed_before_ms = RENEW_MS * (1 + 2 * DRIFT)
    machine.run_until(frozen_at_ms + int(TIMEOUT_MS * (1 - 2 * DRIFT) - renewed_before_ms))
    assert set(machine.renewals) == {0, 1, 2}, "it is ended before its timeout"
    machine.run_until(frozen_at_ms + int(TIMEOUT_MS * (1 + 2 * DRIFT)))
    assert set(machine.renewals) == {0, 1, 2} - {frozen}


def test_a_session_that_ended_is_forgotten() -> None:
    renewals = SessionRenewals(RENEW_MS)
    assert renewals.overdue({1: SessionRow(POLL_MS, 0)}, 0) == []
    assert renewals.overdue({}, POLL_MS) == []
    assert renewals.overdue({1: SessionRow(POLL_MS, 0)}, POLL_MS) == []
    assert renewals.overdue({1: SessionRow(POLL_MS, 0)}, 2 * POLL_MS) == [1]
