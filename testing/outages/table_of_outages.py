"""Outage and client: what the client sees. Its rows are test cases, and a part of a page.

A client does something before the outage, the same meanwhile, and again when it is over. What it
comes to meanwhile stands here, by client; before and afterwards it succeeds. Real clients do all
that in `tests/testing/test_outages_table.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..faults.table_of_faults import CONFLUENT, IDEMPOTENT, KAFKA_PYTHON, OK


class OutageRow(NamedTuple):
    """An outage, and what comes of what a client does meanwhile.

    Attributes:
        name: of the outage.
        how: what a test says.
        brokers: how many brokers there are.
        is_kept: whether the record that was sent meanwhile can be read afterwards.
        seen: what the client is told, by client: `OK`, or its name of an error.
    """

    name: str
    how: str
    brokers: int
    is_kept: bool
    seen: Mapping[str, str]


def _seen(kafka_python: str, confluent: str) -> Mapping[str, str]:
    return {KAFKA_PYTHON: kafka_python, CONFLUENT: confluent}


BOTH_SUCCEED = dict.fromkeys(IDEMPOTENT, OK)

SENDING = (
    OutageRow(
        "the broker is frozen",
        "with broker.frozen(): ...",
        1,
        True,
        _seen("RequestTimedOutError", "_MSG_TIMED_OUT"),
    ),
    OutageRow(
        "its disk is full",
        "with broker.full_disk(): ...",
        1,
        False,
        _seen("KafkaStorageError", "KAFKA_STORAGE_ERROR"),
    ),
    OutageRow(
        "its clock is two hours behind",
        "broker.set_clock_wrong(-7200)",
        1,
        False,
        _seen("InvalidTimestampError", "INVALID_TIMESTAMP"),
    ),
)
"""A producer that does not retry sends a record. A frozen broker has it, and answers too late."""

RETRYING = (
    OutageRow("killed and started", "broker.kill(); broker.start()", 1, True, BOTH_SUCCEED),
    OutageRow("the broker is frozen", "with broker.frozen(): ...", 1, True, BOTH_SUCCEED),
    OutageRow("its disk is full", "with broker.full_disk(): ...", 1, True, BOTH_SUCCEED),
    OutageRow("another broker leads", "cluster.move_leader(topic, 0, to=2)", 2, True, BOTH_SUCCEED),
    OutageRow("the leader is killed", "cluster.leader_of(topic, 0).kill()", 2, True, BOTH_SUCCEED),
)
"""An idempotent producer, which retries, sends a record: it is there, and once."""

COMMITTING = (
    OutageRow(
        "its session expires",
        "broker.expire_session(group)",
        1,
        False,
        _seen("CommitFailedError", "UNKNOWN_MEMBER_ID"),
    ),
    OutageRow("the group rebalances", "broker.force_rebalance(group)", 1, True, _seen(OK, OK)),
)
"""A consumer commits what it has read; `is_kept` is the committed offset."""

TRANSACTIONS = (
    OutageRow(
        "the producer is fenced",
        "broker.fence_producer(transactional_id)",
        1,
        False,
        _seen("ProducerFencedError", "_FENCED"),
    ),
    OutageRow(
        "the transaction expires",
        "broker.expire_transaction(transactional_id)",
        1,
        False,
        _seen("ProducerFencedError", "_FENCED"),
    ),
)
"""A producer commits its transaction; afterwards another one of that id does."""
