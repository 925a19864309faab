"""Every load there is, in the order of the table."""

from __future__ import annotations

from ..run import own_broker
from .fetch_load import bulk_fetch, fetch_wake_up, session_fetch
from .group_load import classic_heartbeats, consumer_heartbeats
from .load import Load
from .produce_load import (
    bulk_produce,
    idempotent_produce,
    produce_in_turn,
    produce_to,
    small_produce,
)
from .round_trip_load import confluent_round_trip, kafka_python_round_trip
from .transaction_load import transactions

__all__ = ["LOADS", "Load", "load_named"]

PARTITIONS_MANY = 1000
PARTITIONS_SOME = (3, 12, 50)
PARTITIONS_IN_TURN = 12
IDLE_CONNECTIONS = 256

LOADS: tuple[Load, ...] = (
    own_broker.start(),
    small_produce(1, 1),
    small_produce(16, 1),
    small_produce(4, 8),
    small_produce(16, 1, idle=IDLE_CONNECTIONS),
    *map(produce_to, PARTITIONS_SOME),
    produce_in_turn(PARTITIONS_IN_TURN),
    idempotent_produce(),
    *(bulk_produce(value_bytes, acks) for value_bytes in (100, 1000) for acks in (1, -1)),
    *(bulk_fetch(value_bytes) for value_bytes in (100, 1000)),
    session_fetch(PARTITIONS_MANY),
    *(session_fetch(PARTITIONS_MANY, busy) for busy in PARTITIONS_SOME),
    fetch_wake_up(),
    fetch_wake_up(PARTITIONS_MANY),
    classic_heartbeats(),
    consumer_heartbeats(),
    transactions(),
    confluent_round_trip(),
    kafka_python_round_trip(),
)


def load_named(name: str) -> Load:
    """The load of this name.

    Raises:
        KeyError: there is none.
    """
    return {load.name: load for load in LOADS}[name]
