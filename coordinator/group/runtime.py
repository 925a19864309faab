"""What all parts of the group coordinator share: settings, time, randomness and the log."""

from __future__ import annotations

import random

from ...runtime.clock import Clock
from ...runtime.timers import Timers
from ..log import CoordinatorLog
from ..runtime import CoordinatorRuntime
from .settings import GroupSettings


class GroupRuntime(CoordinatorRuntime):
    """The coordinator's time and log, its settings and its random numbers.

    Args:
        settings: what the configuration says.
        clock: wall time for records, monotonic time for time-outs.
        timers: where time-outs wait.
        rng: member ids are drawn from it.
        log: where groups and offsets are kept.
    """

    __slots__ = ("rng", "settings")

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        timers: Timers,
        rng: random.Random,
        log: CoordinatorLog,
    ) -> None:
        super().__init__(clock, timers, log)
        self.settings = settings
        self.rng = rng
