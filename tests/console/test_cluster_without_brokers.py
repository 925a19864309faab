"""A Kafka that is only starting, or stops, answers Metadata without brokers."""

from __future__ import annotations

from typing import Any

from odradek.console.cluster.cluster_reader import ClusterSnapshot
from odradek.console.pages.transactions import _max_timeout_minutes

KAFKAS_DEFAULT_MINUTES = 15
"""The default of `transaction.max.timeout.ms` (TransactionStateManagerConfig)."""


async def test_the_longest_transaction_is_kafkas_default_where_there_is_no_broker() -> None:
    unused: Any = None
    snapshot = ClusterSnapshot("cluster", (), {}, (), 0, 0)
    assert await _max_timeout_minutes(unused, snapshot) == KAFKAS_DEFAULT_MINUTES
