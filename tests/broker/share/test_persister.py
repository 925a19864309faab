"""How long the persister tries what passes by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.share.persister import ATTEMPTS_MAX, RETRY_BACKOFF_MS, StatePersister
from odradek.common.errors import ErrorCode
from odradek.coordinator.share.operations import (
    Operation,
    ReadState,
    SharePartitionKey,
    StateAnswer,
    StateCallback,
)
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.tools.simulation.share.broker import CONFIG, KnownLeader

READ = ReadState(SharePartitionKey("workers", bytes(16), 0), 3)
FROZEN_MS = 3_600_000


class Coordinator:
    """A share coordinator of this broker, which answers with `error`.

    Attributes:
        attempts: how often it was given an operation.
    """

    def __init__(self) -> None:
        self.error = ErrorCode.NOT_COORDINATOR
        self.attempts = 0

    def partition_for(self, key: str) -> int:
        return 0

    def submit(self, operation: Operation, respond: StateCallback) -> None:
        self.attempts += 1
        respond(StateAnswer(self.error))


class Bench:
    """A persister whose one operation is on its way, and what it has come to."""

    def __init__(self) -> None:
        self.clock = ManualClock(0)
        self.timers = Timers()
        self.coordinator = Coordinator()
        self.answers: list[StateAnswer] = []
        known: Any = KnownLeader(1)
        replicas: Any = SimpleNamespace(flush=lambda: None)
        coordinator: Any = self.coordinator
        persister = StatePersister(
            CONFIG,
            self.clock,
            self.timers,
            replicas,
            known,
            lambda: coordinator,
            lambda sender: SimpleNamespace(put=None),
            lambda: None,
        )
        persister.submit(READ, self.answers.append)

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())


@pytest.mark.parametrize("steps_ms", [[RETRY_BACKOFF_MS], [FROZEN_MS]])
def test_what_passes_is_tried_again_however_long_an_attempt_took(steps_ms: list[int]) -> None:
    bench = Bench()
    for step_ms in steps_ms * 5:
        assert bench.answers == []
        bench.advance(step_ms)
    bench.coordinator.error = ErrorCode.NONE
    bench.advance(RETRY_BACKOFF_MS)
    assert bench.answers == [StateAnswer()]


def test_what_does_not_pass_is_answered_in_the_end() -> None:
    bench = Bench()
    for _ in range(ATTEMPTS_MAX - 1):
        assert bench.answers == []
        bench.advance(RETRY_BACKOFF_MS)
    assert bench.answers == [StateAnswer(ErrorCode.NOT_COORDINATOR)]
    assert bench.coordinator.attempts == ATTEMPTS_MAX
    assert RETRY_BACKOFF_MS * ATTEMPTS_MAX >= 30_000


def test_what_does_not_pass_by_itself_is_answered_at_once() -> None:
    bench = Bench()
    bench.coordinator.error = ErrorCode.FENCED_LEADER_EPOCH
    bench.advance(RETRY_BACKOFF_MS)
    assert bench.answers == [StateAnswer(ErrorCode.FENCED_LEADER_EPOCH)]
