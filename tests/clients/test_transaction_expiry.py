"""What a coordinator ends by itself, and what an operator ends: ids, transactions, hanging ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient
from support.transaction_peer import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    SETTLE_SECONDS_MAX,
    Marker,
    TransactionPeer,
)

from odradek.common.errors import ErrorCode as E
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

EXPIRATION_MS = 5_000
TIMEOUT_MS = 3_000
TOPIC = "topic"

StartBroker = Callable[..., Any]


def start(start_broker: StartBroker, **settings: str) -> Any:
    """A broker that looks often for what has expired, with a topic."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    broker = start_broker(
        settings={
            "transaction.state.log.num.partitions": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
            **dotted,
        }
    )
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        requested = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({TOPIC: requested}, wait_for_metadata=True)
    return broker


def peer_of(broker: Any, name: str, timeout_ms: int = 60_000) -> TransactionPeer:
    """A producer that is initialized; the topic has its leader."""
    peer = TransactionPeer(broker.port, name).start(timeout_ms)
    peer.end_offset(TOPIC, isolation=READ_UNCOMMITTED)
    return peer


def wait_error(peer: TransactionPeer, error: E) -> None:
    """Wait until describing the transaction comes to this."""
    wait_until(lambda: peer.describe().error_code == error, SETTLE_SECONDS_MAX)


def test_an_id_that_is_not_used_is_forgotten_unless_its_transaction_is_open(
    start_broker: StartBroker,
) -> None:
    broker = start(start_broker, transactional_id_expiration_ms=str(EXPIRATION_MS))
    peers: dict[str, TransactionPeer] = {}
    for state in ("CompleteCommit", "CompleteAbort", "Ongoing"):
        peer = peers[state] = peer_of(broker, state)
        assert peer.write(TOPIC, 0, state.encode(), version=12) == E.NONE
        if state != "Ongoing":
            assert peer.end(committed=state == "CompleteCommit").error == E.NONE
            peer.wait_state(state)
    peers["Empty"] = peer_of(broker, "Empty")
    ids = {name: peer.producer_id for name, peer in peers.items()}
    for state in ("CompleteCommit", "CompleteAbort", "Empty"):
        wait_error(peers[state], E.TRANSACTIONAL_ID_NOT_FOUND)
    assert peers["Ongoing"].state == "Ongoing"
    again = peer_of(broker, "CompleteCommit")
    assert again.producer_id not in ids.values(), "a forgotten id is a new producer's"
    assert again.producer_epoch == 0
    broker.restart()
    later = TransactionPeer(broker.port, "Empty")
    later.find_coordinator()
    wait_error(later, E.TRANSACTIONAL_ID_NOT_FOUND)


def test_a_transaction_past_its_time_is_aborted_and_its_producer_fenced(
    start_broker: StartBroker,
) -> None:
    broker = start(start_broker)
    peer = peer_of(broker, "slow", TIMEOUT_MS)
    patient = peer_of(broker, "patient")
    assert peer.write(TOPIC, version=12) == E.NONE
    assert patient.write(TOPIC, version=12) == E.NONE
    peer.wait_state("CompleteAbort")
    assert patient.state == "Ongoing"
    assert peer.describe().producer_epoch == peer.producer_epoch + 1
    # In version 5 the former epoch could be of a request that is sent again.
    assert peer.end(committed=True, version=5, keep=False).error == E.INVALID_TXN_STATE
    assert peer.end(committed=True, version=4).error == E.PRODUCER_FENCED
    assert peer.write(TOPIC, version=12) == E.INVALID_PRODUCER_EPOCH
    assert peer.end_offset(TOPIC, isolation=READ_COMMITTED) == 1, "the other one is open"
    assert patient.end(committed=True).error == E.NONE
    assert patient.wait_stable(TOPIC) == 4, "two records, two markers"


def test_transactions_are_listed_by_state_producer_duration_and_name(
    start_broker: StartBroker,
) -> None:
    broker = start(start_broker)
    idle, first, second = (peer_of(broker, name) for name in ("idle", "open-1", "open-2"))
    for peer in (first, second):
        assert peer.write(TOPIC, version=12) == E.NONE

    def listed(version: int = 2, **filters: Any) -> set[str]:
        answer = idle.list_transactions(version, **filters)
        assert answer.error_code == E.NONE
        return {each.transactional_id for each in answer.transaction_states}

    assert listed() == {"idle", "open-1", "open-2"}
    assert listed(version=0, state_filters=["Ongoing"]) == {"open-1", "open-2"}
    assert listed(version=0, producer_id_filters=[idle.producer_id]) == {"idle"}
    assert listed(version=1, duration_filter=3_600_000) == {"idle"}, "it has no start"
    assert listed(transactional_id_pattern="open-.*") == {"open-1", "open-2"}
    assert listed(transactional_id_pattern="open") == set(), "a pattern is for the whole name"
    everybody = {"idle", "open-1", "open-2"}
    wait_until(lambda: listed(version=1, duration_filter=50) == everybody, SETTLE_SECONDS_MAX)
    answer = idle.list_transactions(state_filters=["Ongoing", "Sleeping"])
    assert answer.unknown_state_filters == ["Sleeping"]


def test_a_transaction_that_hangs_is_found_and_aborted(start_broker: StartBroker) -> None:
    """Its coordinator never heard of the partition, and will not end it there."""
    broker = start(start_broker, transaction_partition_verification_enable="false")
    peer = peer_of(broker, "hanging")
    assert peer.write(TOPIC, version=11) == E.NONE
    assert peer.state == "Empty"
    assert peer.end_offset(TOPIC, isolation=READ_COMMITTED) == 0
    (producer,) = peer.describe_producers(TOPIC).active_producers
    assert producer.producer_id == peer.producer_id
    assert producer.producer_epoch == peer.producer_epoch
    assert producer.current_txn_start_offset == 0
    assert producer.coordinator_epoch == -1
    abort = Marker(
        producer.producer_id, producer.producer_epoch, False, {TOPIC: [0]}, coordinator_epoch=0
    )
    assert peer.write_markers(abort) == {(TOPIC, 0): E.NONE}
    assert peer.wait_stable(TOPIC) == 2
    (producer,) = peer.describe_producers(TOPIC).active_producers
    assert producer.current_txn_start_offset == -1
