"""What all parts of the group coordinator share: settings, time, chance and the log."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ...common.errors import ErrorCode
from ...runtime.clock import Clock
from ...runtime.timers import Timer, Timers
from ..log import AppendCallback, AppendInTransaction, CoordinatorLog, CoordinatorRecord
from .settings import GroupSettings


class CoordinatorContext:
    """The coordinator's surroundings.

    Args:
        settings: what the configuration says.
        clock: wall time for records, monotonic time for time-outs.
        timers: where time-outs wait.
        chance: member ids are drawn from it.
        log: where groups and offsets are kept.
    """

    __slots__ = ("_has_appended", "chance", "clock", "log", "settings", "timers")

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        timers: Timers,
        chance: random.Random,
        log: CoordinatorLog,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.timers = timers
        self.chance = chance
        self.log = log
        self._has_appended = False

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        on_complete: AppendCallback,
        transaction: AppendInTransaction | None = None,
    ) -> ErrorCode:
        """Append to the log; see `CoordinatorLog.append`."""
        self._has_appended = True
        return self.log.append(partition, records, on_complete, transaction)

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` in `delay_ms`, and flush what it appends: no pass is under way then."""
        return self.timers.schedule(
            self.clock.monotonic_ms() + delay_ms, lambda: self.run_flushed(callback)
        )

    def run_flushed(self, callback: Callable[[], None]) -> None:
        """Call `callback` outside of a request's pass, and flush what it appends."""
        self._has_appended = False
        callback()
        if self._has_appended:
            self._has_appended = False
            self.log.flush()
