"""What a broker is doing between its start and its end, as Kafka numbers it (BrokerState)."""

from __future__ import annotations

from enum import IntEnum


class BrokerState(IntEnum):
    """Kafka's BrokerState, which its metric shows."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7
