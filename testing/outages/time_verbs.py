"""A broker's time, advanced: what waits for a moment that has come by it is done at once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ...coordinator.transaction.state.states import PREPARED
from ...replication.partition.replica import LONG_AGO_MS
from ..control.verbs import VerbError
from .broker_clock import BrokerClock

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)

MARKERS_SECONDS_MAX = 30.0
"""How long the markers of transactions that end by it are waited for."""
LOOK_SECONDS = 0.002


async def advance(target: Controlled, milliseconds: int) -> int:
    """Let time have passed; answers when all that this ends has ended.

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
        broker.group_coordinator.expire_offsets()  # else empty groups would go before their time
    broker.transaction_coordinator.catch_up()
    broker.server.finish_outside_work()
    with trio.move_on_after(MARKERS_SECONDS_MAX):
        while _are_ending(broker):
            await trio.sleep(LOOK_SECONDS)
    await broker.log_maintenance.catch_up()
    return clock.ahead_ms


def skew(target: Controlled, milliseconds: int) -> int:
    """Set the wall clock wrong by so much, ahead or behind, while no time passes; 0: right."""
    _clock(target).skew_ms = milliseconds
    logger.warning("outage: this broker's clock is wrong by %.3f s", milliseconds / 1000)
    return milliseconds


def read(target: Controlled) -> dict[str, int]:
    """The broker's wall time, and how far it is ahead and wrong, in milliseconds."""
    clock = _clock(target)
    return {"now_ms": clock.now_ms(), "ahead_ms": clock.ahead_ms, "skew_ms": clock.skew_ms}


def _keep_followers(broker: Broker, milliseconds: int) -> None:
    """No follower has fallen behind while no time passed for it."""
    for partition in broker.replica_manager.hosted.online.values():
        for replica in partition.remote_replicas.values():
            if replica.last_caught_up_ms != LONG_AGO_MS:
                replica.last_caught_up_ms += milliseconds
            if replica.last_fetch_ms != LONG_AGO_MS:
                replica.last_fetch_ms += milliseconds


def _are_ending(broker: Broker) -> bool:
    return any(
        known.pending in PREPARED or known.transaction.state in PREPARED
        for known in broker.transaction_coordinator.ids
    )


def _clock(target: Controlled) -> BrokerClock:
    clock = target.clock
    if not isinstance(clock, BrokerClock):
        raise VerbError("this broker has the system's clock, which nobody can advance")
    return clock
