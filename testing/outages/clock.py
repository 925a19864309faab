"""A broker's time, which a test may advance: what is due by then is done at once."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from ..control.framing import VerbError
from ..control.verbs import verb

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ..control.target import ControlTarget

logger = logging.getLogger(__name__)

MARKERS_SECONDS_MAX = 30.0
"""How long the markers of transactions that end by it are waited for."""


class BrokerClock:
    """The operating system's clocks, and what a test has added to them.

    Args:
        ahead_ms: how much was added before, by a broker that this one goes on for.

    Attributes:
        ahead_ms: how far its wall time is ahead of the system's; its monotonic time is so far
            ahead, too, or farther.
        skew_ms: how wrong its wall time is besides, as of a machine that nobody has set.
    """

    def __init__(self, ahead_ms: int = 0, skew_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms
        self.skew_ms = skew_ms
        self._passed_ms = ahead_ms

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000 + self.ahead_ms + self.skew_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""
        return time.monotonic_ns() // 1_000_000 + self._passed_ms

    def advance(self, milliseconds: int) -> None:
        """Let time have passed, on both readings.

        Raises:
            ValueError: time does not go back.
        """
        if milliseconds < 0:
            raise ValueError(f"time cannot go back by {-milliseconds} ms")
        self.ahead_ms += milliseconds
        self._passed_ms += milliseconds

    def set_right(self) -> None:
        """Have wall time be the system's again; for a broker that keeps nothing it was stamped on.

        The time that has passed has passed all the same.
        """
        self.ahead_ms = self.skew_ms = 0


@verb
async def advance(target: ControlTarget, milliseconds: int) -> int:
    """Let time have passed; returns when all that this ends has ended.

    Sessions, transactions, retention, committed offsets, producers' ids, waits of requests. But
    only clients were silent meanwhile: followers have kept up, connections have not idled.

    Args:
        milliseconds: not negative.

    Returns:
        How far the broker's time is ahead now, in milliseconds.
    """
    clock = _clock(target)
    broker = target.broker
    logger.warning("outage: %.3f s pass at once for this broker", milliseconds / 1000)
    clock.advance(milliseconds)
    _keep_followers(broker, milliseconds)
    broker.server.time_jumped(milliseconds)
    if milliseconds >= broker.config["offsets.retention.minutes"] * 60_000:
        broker.coordinators.group.expire_offsets()  # else empty groups would go before their time
    broker.coordinators.transaction.catch_up()
    broker.server.finish_outside_work()
    await target.wait_until(lambda: not _are_ending(broker), MARKERS_SECONDS_MAX)
    await broker.log_maintenance.catch_up()
    return clock.ahead_ms


@verb
def skew(target: ControlTarget, milliseconds: int) -> int:
    """Set the wall clock wrong by so much, ahead or behind, while no time passes; 0: right."""
    _clock(target).skew_ms = milliseconds
    logger.warning("outage: this broker's clock is wrong by %.3f s", milliseconds / 1000)
    return milliseconds


@verb
def clock(target: ControlTarget) -> float:
    """What time it is for the broker, in seconds since the epoch."""
    return _clock(target).now_ms() / 1000


def _keep_followers(broker: Broker, milliseconds: int) -> None:
    """No follower has fallen behind while no time passed for it."""
    from ...replication.partition.replica import LONG_AGO_MS

    for partition in broker.replica_manager.partitions.values():
        for replica in partition.remote_replicas.values():
            if replica.last_caught_up_ms != LONG_AGO_MS:
                replica.last_caught_up_ms += milliseconds
            if replica.last_fetch_ms != LONG_AGO_MS:
                replica.last_fetch_ms += milliseconds


def _are_ending(broker: Broker) -> bool:
    from ...coordinator.transaction.states import PREPARED

    return any(
        known.pending in PREPARED or known.transaction.state in PREPARED
        for known in broker.coordinators.transaction.ids
    )


def _clock(target: ControlTarget) -> BrokerClock:
    clock = target.clock
    if not isinstance(clock, BrokerClock):
        raise VerbError("this broker has the system's clock, which nobody can advance")
    return clock
