"""CoordinatorRuntime: time, and the log that a coordinator keeps its state in.

After the part of Kafka's CoordinatorRuntime that schedules and appends; what it loads is in
`shards.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..common.errors import ErrorCode
from ..protocol.records.builder import EncodedRecords
from ..runtime.clock import Clock
from ..runtime.long_work import take_step
from ..runtime.steps import Steps
from ..runtime.timers import Timer, Timers
from .log import AppendCallback, AppendInTransaction, CoordinatorLog, CoordinatorRecord


class ConfigurationValues(Protocol):
    """What coordinators need of a configuration."""

    def __getitem__(self, key: str) -> Any:
        """The typed value of a key."""


class CoordinatorRuntime:
    """What all parts of a coordinator share.

    Args:
        clock: wall time for records, monotonic time for time-outs.
        timers: where time-outs wait.
        log: where the coordinator keeps its state.
    """

    __slots__ = ("_has_appended", "_long_work", "clock", "log", "timers")

    def __init__(self, clock: Clock, timers: Timers, log: CoordinatorLog) -> None:
        self.clock = clock
        self.timers = timers
        self.log = log
        self._has_appended = False
        self._long_work: deque[Steps[None]] = deque()

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord] | EncodedRecords,
        on_complete: AppendCallback,
        transaction: AppendInTransaction | None = None,
    ) -> ErrorCode:
        """Append to the log; see `CoordinatorLog.append`."""
        self._has_appended = True
        return self.log.append(partition, records, on_complete, transaction)

    def note_appended(self) -> None:
        """Another coordinator may have appended for what is done now: that is flushed, too."""
        self._has_appended = True

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` in `delay_ms`, and flush what it appends: no pass is under way then."""
        return self.timers.schedule(
            self.clock.monotonic_ms() + delay_ms, lambda: self.run_flushed(callback)
        )

    def run_in_steps(self, work: Steps[None]) -> None:
        """Do long work outside of requests: a step now, each other one when others had a turn.

        Of all such work one step is done at a time. What it appends is flushed behind it.
        """

        def begin() -> None:
            if take_step(work) is None:
                self._long_work.append(work)
                if len(self._long_work) == 1:
                    self.schedule(0, self._go_on)

        self.run_flushed(begin)

    def _go_on(self) -> None:
        """Take a step of the work whose turn it is."""
        work = self._long_work[0]
        has_more = False
        try:
            has_more = take_step(work) is None
        finally:
            self._long_work.popleft()
            if has_more:
                self._long_work.append(work)
            if self._long_work:
                self.schedule(0, self._go_on)

    def run_flushed(self, callback: Callable[[], None]) -> None:
        """Call `callback` outside of a request's pass, and flush what it appends."""
        self._has_appended = False
        callback()
        if self._has_appended:
            self._has_appended = False
            self.log.flush()
