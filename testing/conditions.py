"""What a test can wait for, and how it hears that it waited in vain.

from odradek.testing.conditions import group_stable, no_lag

broker.wait_until(group_stable("shippers", members=2), no_lag("shippers"), timeout=5)
"""

from __future__ import annotations

from .inspection.conditions import (
    Condition,
    group_empty,
    group_gone,
    group_in_state,
    group_stable,
    isr_is,
    lag_is,
    leader_is,
    no_lag,
    record_matching,
    records_in,
    requests,
    topic_exists,
    topic_gone,
    transaction_is,
)
from .inspection.waiting import NotReached

__all__ = [
    "Condition",
    "NotReached",
    "group_empty",
    "group_gone",
    "group_in_state",
    "group_stable",
    "isr_is",
    "lag_is",
    "leader_is",
    "no_lag",
    "record_matching",
    "records_in",
    "requests",
    "topic_exists",
    "topic_gone",
    "transaction_is",
]
