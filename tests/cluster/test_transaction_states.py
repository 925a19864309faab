"""Every request in every state of a transaction, over TCP, and every transition of the table.

The expected cells are what `support.transaction_cells` saw of Apache Kafka 4.3.1 (two brokers,
KRaft, transaction.version 2).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.broker_cluster import BrokerCluster
from support.cluster_topics import create_topic_on
from support.transaction_cells import STATES, Cell, Topics, observe

from odradek.common.errors import ErrorCode as E
from odradek.coordinator.transaction.states import (
    TRANSITIONS,
    TransactionEvent,
    TransactionState,
)

SETTINGS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
}
HELD = 3
"""The broker that is frozen."""

CELLS: dict[tuple[str, str], Cell] = {
    ("Empty", "init"): Cell(E.NONE, 1, "Empty"),
    ("Empty", "init as itself"): Cell(E.NONE, 1, "Empty"),
    ("Empty", "add partitions"): Cell(E.NONE, 0, "Ongoing"),
    ("Empty", "add offsets"): Cell(E.NONE, 0, "Ongoing"),
    ("Empty", "verify"): Cell(E.TRANSACTION_ABORTABLE, 0, "Empty"),
    ("Empty", "commit"): Cell(E.INVALID_TXN_STATE, 0, "Empty"),
    ("Empty", "abort"): Cell(E.INVALID_TXN_STATE, 0, "Empty"),
    ("Empty", "commit 5"): Cell(E.INVALID_TXN_STATE, 0, "Empty"),
    ("Empty", "abort 5"): Cell(E.NONE, 1, "CompleteAbort"),
    ("Ongoing", "init"): Cell(E.CONCURRENT_TRANSACTIONS, 1, "CompleteAbort"),
    ("Ongoing", "init as itself"): Cell(E.CONCURRENT_TRANSACTIONS, 1, "CompleteAbort"),
    ("Ongoing", "add partitions"): Cell(E.NONE, 0, "Ongoing"),
    ("Ongoing", "add offsets"): Cell(E.NONE, 0, "Ongoing"),
    ("Ongoing", "verify"): Cell(E.NONE, 0, "Ongoing"),
    ("Ongoing", "commit"): Cell(E.NONE, 0, "CompleteCommit"),
    ("Ongoing", "abort"): Cell(E.NONE, 0, "CompleteAbort"),
    ("Ongoing", "commit 5"): Cell(E.NONE, 1, "CompleteCommit"),
    ("Ongoing", "abort 5"): Cell(E.NONE, 1, "CompleteAbort"),
    ("CompleteCommit", "init"): Cell(E.NONE, 1, "Empty"),
    ("CompleteCommit", "init as itself"): Cell(E.NONE, 1, "Empty"),
    ("CompleteCommit", "add partitions"): Cell(E.NONE, 0, "Ongoing"),
    ("CompleteCommit", "add offsets"): Cell(E.NONE, 0, "Ongoing"),
    ("CompleteCommit", "verify"): Cell(E.TRANSACTION_ABORTABLE, 0, "CompleteCommit"),
    ("CompleteCommit", "commit"): Cell(E.NONE, 0, "CompleteCommit"),
    ("CompleteCommit", "abort"): Cell(E.INVALID_TXN_STATE, 0, "CompleteCommit"),
    ("CompleteCommit", "commit 5"): Cell(E.INVALID_TXN_STATE, 0, "CompleteCommit"),
    ("CompleteCommit", "abort 5"): Cell(E.NONE, 1, "CompleteAbort"),
    ("CompleteAbort", "init"): Cell(E.NONE, 1, "Empty"),
    ("CompleteAbort", "init as itself"): Cell(E.NONE, 1, "Empty"),
    ("CompleteAbort", "add partitions"): Cell(E.NONE, 0, "Ongoing"),
    ("CompleteAbort", "add offsets"): Cell(E.NONE, 0, "Ongoing"),
    ("CompleteAbort", "verify"): Cell(E.TRANSACTION_ABORTABLE, 0, "CompleteAbort"),
    ("CompleteAbort", "commit"): Cell(E.INVALID_TXN_STATE, 0, "CompleteAbort"),
    ("CompleteAbort", "abort"): Cell(E.NONE, 0, "CompleteAbort"),
    ("CompleteAbort", "commit 5"): Cell(E.INVALID_TXN_STATE, 0, "CompleteAbort"),
    ("CompleteAbort", "abort 5"): Cell(E.NONE, 1, "CompleteAbort"),
    ("PrepareCommit", "init"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "init as itself"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "add partitions"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "add offsets"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "verify"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "commit"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "abort"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "commit 5"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareCommit", "abort 5"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteCommit"),
    ("PrepareAbort", "init"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "init as itself"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "add partitions"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "add offsets"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "verify"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "commit"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "abort"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "commit 5"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
    ("PrepareAbort", "abort 5"): Cell(E.CONCURRENT_TRANSACTIONS, 0, "CompleteAbort"),
}

SHOWN_BY: dict[tuple[TransactionState, TransactionEvent], tuple[str, str]] = {
    (TransactionState.EMPTY, TransactionEvent.INITIALIZED): ("Empty", "init"),
    (TransactionState.EMPTY, TransactionEvent.PARTITIONS_ADDED): ("Empty", "add partitions"),
    (TransactionState.EMPTY, TransactionEvent.EMPTY_ABORT_REQUESTED): ("Empty", "abort 5"),
    (TransactionState.ONGOING, TransactionEvent.PARTITIONS_ADDED): ("Ongoing", "add partitions"),
    (TransactionState.ONGOING, TransactionEvent.COMMIT_REQUESTED): ("Ongoing", "commit"),
    (TransactionState.ONGOING, TransactionEvent.ABORT_REQUESTED): ("Ongoing", "abort"),
    (TransactionState.ONGOING, TransactionEvent.FENCED): ("Ongoing", "init"),
    (TransactionState.PREPARE_EPOCH_FENCE, TransactionEvent.ABORT_REQUESTED): ("Ongoing", "init"),
    (TransactionState.PREPARE_COMMIT, TransactionEvent.MARKERS_WRITTEN): (
        "PrepareCommit",
        "verify",
    ),
    (TransactionState.PREPARE_ABORT, TransactionEvent.MARKERS_WRITTEN): (
        "PrepareAbort",
        "verify",
    ),
    (TransactionState.COMPLETE_COMMIT, TransactionEvent.INITIALIZED): ("CompleteCommit", "init"),
    (TransactionState.COMPLETE_COMMIT, TransactionEvent.PARTITIONS_ADDED): (
        "CompleteCommit",
        "add offsets",
    ),
    (TransactionState.COMPLETE_COMMIT, TransactionEvent.EMPTY_ABORT_REQUESTED): (
        "CompleteCommit",
        "abort 5",
    ),
    (TransactionState.COMPLETE_ABORT, TransactionEvent.INITIALIZED): ("CompleteAbort", "init"),
    (TransactionState.COMPLETE_ABORT, TransactionEvent.PARTITIONS_ADDED): (
        "CompleteAbort",
        "add offsets",
    ),
    (TransactionState.COMPLETE_ABORT, TransactionEvent.EMPTY_ABORT_REQUESTED): (
        "CompleteAbort",
        "abort 5",
    ),
}
"""The cell that shows a transition; those of expired ids have a test of their own."""


EXPIRING = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
"""Ids in these states expire: see `tests/clients/test_transaction_expiry.py`."""

AT_REST = {
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
}
BY_ITSELF = {TransactionEvent.MARKERS_WRITTEN, TransactionEvent.ABORT_REQUESTED}
"""What the coordinator does unasked, once a transaction is ending."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("transactions") / "cluster", None, SETTINGS) as all_:
        yield all_


def test_each_request_in_each_state_does_what_it_does_in_kafka(cluster: BrokerCluster) -> None:
    topics = Topics("first", "second", HELD)
    for name in (topics.first, topics.second):
        create_topic_on(cluster, name, (HELD,))
    assert observe(cluster, topics, "cell") == CELLS


@pytest.mark.short
def test_each_transition_is_shown() -> None:
    expired = {(state, TransactionEvent.EXPIRED) for state in EXPIRING}
    assert TRANSITIONS.by_event.keys() == SHOWN_BY.keys() | expired
    assert {state for state, _ in CELLS} == set(STATES)
    for (state, event), cell in SHOWN_BY.items():
        target = TRANSITIONS.next_state(state, event)
        while target not in AT_REST:  # what follows by itself
            (target,) = {
                row.target
                for row in TRANSITIONS.transitions
                if row.source == target and row.event in BY_ITSELF
            }
        assert CELLS[cell].state == target.shown, (state, event)
