"""What all parts of the transaction coordinator share: settings, time, log, and neighbours."""

from __future__ import annotations

from collections.abc import Callable

from ...runtime.clock import Clock
from ...runtime.timers import Timer, Timers
from ..log import CoordinatorLog
from .markers.marker_sender import MarkerSender
from .settings import TransactionSettings


class TransactionContext:
    """The coordinator's surroundings.

    Args:
        settings: what the configuration says.
        clock: wall time for records, monotonic time for time-outs.
        timers: where time-outs wait.
        log: where transactional ids are kept.
        markers: writes the ends of transactions into their partitions.
        take_producer_id: a producer id that nobody had; None if none is at hand just now.
        transaction_version: what the cluster has finalized of `transaction.version`.
    """

    __slots__ = (
        "clock",
        "log",
        "markers",
        "settings",
        "take_producer_id",
        "timers",
        "transaction_version",
    )

    def __init__(
        self,
        settings: TransactionSettings,
        clock: Clock,
        timers: Timers,
        log: CoordinatorLog,
        markers: MarkerSender,
        take_producer_id: Callable[[], int | None],
        transaction_version: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.timers = timers
        self.log = log
        self.markers = markers
        self.take_producer_id = take_producer_id
        self.transaction_version = transaction_version

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` in `delay_ms`, and flush what it appends: no pass is under way then."""
        return self.timers.schedule(
            self.clock.monotonic_ms() + delay_ms, lambda: self.run_flushed(callback)
        )

    def run_flushed(self, callback: Callable[[], None]) -> None:
        """Call `callback` outside of a request's pass, and flush what it appends."""
        callback()
        self.log.flush()
