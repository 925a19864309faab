"""What all parts of the transaction coordinator share: settings, time, log, and neighbours."""

from __future__ import annotations

from collections.abc import Callable

from ...runtime.clock import Clock
from ...runtime.timers import Timers
from ..log import CoordinatorLog
from ..runtime import CoordinatorRuntime
from .marker_sender import MarkerSender
from .settings import TransactionSettings


class TransactionRuntime(CoordinatorRuntime):
    """The coordinator's time and log, its settings, and who does what it cannot.

    Args:
        settings: what the configuration says.
        clock: wall time for records, monotonic time for time-outs.
        timers: where time-outs wait.
        log: where transactional ids are kept.
        markers: writes the ends of transactions into their partitions.
        take_producer_id: a producer id that nobody had; None if none is at hand just now.
        transaction_version: what the cluster has finalized of `transaction.version`.
    """

    __slots__ = ("markers", "settings", "take_producer_id", "transaction_version")

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
        super().__init__(clock, timers, log)
        self.settings = settings
        self.markers = markers
        self.take_producer_id = take_producer_id
        self.transaction_version = transaction_version
