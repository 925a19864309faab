"""The error codes of the requests about transactions that take several brokers to come.

The rest is in `tests/clients/test_transaction_errors.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.broker_cluster import BrokerCluster
from support.cluster_topics import GROUP, TRANSACTION, coordinator, create_topic_on
from support.transaction_cells import peers
from support.transaction_errors import provokes
from support.transaction_peer import Marker, TransactionPeer, settled

from odradek.common.errors import ErrorCode as E
from odradek.protocol.messages import DescribeGroupsRequest, DescribeTransactionsRequest
from odradek.testing.waiting import wait_until

SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
ALONE = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
}
WITNESS = "nobody"
REQUEST_SECONDS = 1
SETTLE_SECONDS_MAX = 120.0

# --- Nobody else has the partition ---------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    settings = {**SETTINGS, **ALONE, "replica.lag.time.max.ms": "1500"}
    with BrokerCluster(tmp_path_factory.mktemp("errors") / "cluster", None, settings) as running:
        yield running


@provokes("WriteTxnMarkers", E.NOT_LEADER_OR_FOLLOWER)
@provokes("DescribeProducers", E.NOT_LEADER_OR_FOLLOWER)
def test_who_does_not_lead_a_partition_writes_no_marker_there(cluster: BrokerCluster) -> None:
    create_topic_on(cluster, "followed", (1, 2))
    marker = Marker(7, 0, False, {"followed": [0]})
    for broker_id, written, described in (
        (1, E.NONE, E.NONE),
        (2, E.NOT_LEADER_OR_FOLLOWER, E.NONE),
        (3, E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_LEADER_OR_FOLLOWER),
    ):
        peer = TransactionPeer(cluster.brokers[broker_id].port, WITNESS)
        assert peer.write_markers(marker) == {("followed", 0): written}
        assert peer.describe_producers("followed").error_code == described
        peer.close()


@provokes("WriteTxnMarkers", E.NOT_ENOUGH_REPLICAS)
def test_markers_need_as_many_replicas_as_other_records(cluster: BrokerCluster) -> None:
    create_topic_on(cluster, "shrinking", (1, 2), configs={"min.insync.replicas": "2"})
    peer = TransactionPeer(cluster.brokers[1].port, WITNESS)
    cluster.brokers[2].kill()
    wait_until(lambda: cluster.view(1).topics["shrinking"][0].isr == {1}, SETTLE_SECONDS_MAX)
    answer = peer.write_markers(Marker(7, 0, False, {"shrinking": [0]}))
    assert answer == {("shrinking", 0): E.NOT_ENOUGH_REPLICAS}
    cluster.brokers[2].start()
    cluster.agreed()


@provokes("AddPartitionsToTxn", E.CONCURRENT_TRANSACTIONS)
@provokes("AddOffsetsToTxn", E.CONCURRENT_TRANSACTIONS)
@provokes("EndTxn", E.CONCURRENT_TRANSACTIONS)
def test_a_transaction_that_is_ending_is_left_alone(cluster: BrokerCluster) -> None:
    """Its markers wait for a broker that is frozen: see `test_transaction_states` for all."""
    create_topic_on(cluster, "frozen", (3,))
    peer = next(peers(cluster, "ending", but=3))
    assert set(peer.add_partitions({"frozen": [0]}).values()) == {E.NONE}
    cluster.pause(3)
    try:
        settled(lambda: peer.end(committed=True))
        assert peer.add_partitions({"frozen": [0]}) == {("frozen", 0): E.CONCURRENT_TRANSACTIONS}
        assert peer.add_offsets("group") == E.CONCURRENT_TRANSACTIONS
        assert peer.end(committed=True).error == E.CONCURRENT_TRANSACTIONS
    finally:
        cluster.resume(3)
    peer.wait_state("CompleteCommit")


@provokes("InitProducerId", E.NOT_COORDINATOR)
@provokes("AddPartitionsToTxn", E.NOT_COORDINATOR)
@provokes("AddOffsetsToTxn", E.NOT_COORDINATOR)
@provokes("EndTxn", E.NOT_COORDINATOR)
@provokes("TxnOffsetCommit", E.NOT_COORDINATOR)
@provokes("DescribeTransactions", E.NOT_COORDINATOR)
def test_every_other_broker_is_not_the_coordinator(cluster: BrokerCluster) -> None:
    create_topic_on(cluster, "asked", (1, 2, 3))
    mine = coordinator(cluster, TRANSACTION, "asking")
    groups = coordinator(cluster, GROUP, "asking")
    peer = TransactionPeer(cluster.brokers[mine].port, "asking").start()
    assert peer.add_offsets("asking") == E.NONE
    who = {"producer_id": peer.producer_id, "producer_epoch": peer.producer_epoch}
    for broker_id, broker in cluster.brokers.items():
        other = TransactionPeer(broker.port, "asking")
        if broker_id != mine:
            assert other.init(keep=False).error == E.NOT_COORDINATOR
            added = other.add_partitions({"asked": [0]}, **who)
            assert added == {("asked", 0): E.NOT_COORDINATOR}
            assert other.add_offsets("asking", **who) == E.NOT_COORDINATOR
            assert other.end(committed=True, **who).error == E.NOT_COORDINATOR
            assert other.describe().error_code == E.NOT_COORDINATOR
            assert (
                other.list_transactions(transactional_id_pattern="asking").transaction_states == []
            )
        if broker_id != groups:
            committed = other.commit_offsets("asking", {("asked", 0): 1}, **who)
            assert committed == {("asked", 0): E.NOT_COORDINATOR}
        other.close()


# --- Waiting in vain -----------------------------------------------------------------------------


@provokes("WriteTxnMarkers", E.REQUEST_TIMED_OUT)
def test_a_marker_does_not_wait_for_ever(tmp_path: Path) -> None:
    settings = {
        **SETTINGS,
        "replica.lag.time.max.ms": "60000",
        "request.timeout.ms": str(REQUEST_SECONDS * 1000),
    }
    with BrokerCluster(tmp_path / "cluster", None, settings) as running:
        create_topic_on(running, "patient", (1, 2))
        peer = TransactionPeer(running.brokers[1].port, WITNESS)
        running.pause(2)
        try:
            answer = peer.write_markers(Marker(7, 0, False, {"patient": [0]}))
        finally:
            running.resume(2)
        assert answer == {("patient", 0): E.REQUEST_TIMED_OUT}


def wait_loaded(cluster: BrokerCluster, broker_id: int, name: str) -> None:
    """Wait until a broker has read what it coordinates of a transaction and a group so named.

    It reads both anew under each leader epoch, and answers until then that it is loading.
    """
    transactions = DescribeTransactionsRequest(transactional_ids=[name])
    groups = DescribeGroupsRequest(groups=[name])

    def is_loaded() -> bool:
        (transaction,) = cluster.ask(broker_id, transactions, 0).transaction_states
        (group,) = cluster.ask(broker_id, groups, 5).groups
        return bool(transaction.error_code == group.error_code == E.NONE)

    wait_until(is_loaded, SETTLE_SECONDS_MAX)


@provokes("InitProducerId", E.COORDINATOR_NOT_AVAILABLE)
@provokes("AddPartitionsToTxn", E.COORDINATOR_NOT_AVAILABLE)
@provokes("AddOffsetsToTxn", E.COORDINATOR_NOT_AVAILABLE)
@provokes("EndTxn", E.COORDINATOR_NOT_AVAILABLE)
@provokes("TxnOffsetCommit", E.COORDINATOR_NOT_AVAILABLE)
def test_a_coordinator_that_may_not_write_is_not_available(tmp_path: Path) -> None:
    settings = {**SETTINGS, "min.insync.replicas": "2", "transaction.state.log.min.isr": "2"}
    with BrokerCluster(tmp_path / "cluster", None, settings) as running:
        create_topic_on(running, "topic", (1, 2, 3), (1, 2, 3))
        for number in range(100):
            transactional_id = f"transaction-{number}"
            survivor = coordinator(running, TRANSACTION, transactional_id)
            if coordinator(running, GROUP, transactional_id) == survivor:
                break
        peer = TransactionPeer(running.brokers[survivor].port, transactional_id).start()
        assert set(peer.add_partitions({"topic": [0]}).values()) == {E.NONE}
        assert peer.add_offsets(transactional_id) == E.NONE
        for broker_id in set(running.running) - {survivor}:
            running.brokers[broker_id].kill()
        running.agreed(
            lambda view: all(
                each.isr == {survivor} == {each.leader}
                for topic in view.topics.values()
                for each in topic.values()
            )
        )
        wait_loaded(running, survivor, transactional_id)
        error = E.COORDINATOR_NOT_AVAILABLE
        assert peer.commit_offsets(transactional_id, {("topic", 0): 1}) == {("topic", 0): error}
        assert peer.add_partitions({"topic": [0, 1]}) == {
            ("topic", 0): error,
            ("topic", 1): error,
        }
        others = {peer.add_offsets(f"group-{number}") for number in range(20)}
        assert others == {E.NONE, error}, "groups of a partition that is there, and new ones"
        assert peer.end(committed=True).error == error
        assert peer.state == "Ongoing"
        assert peer.init(keep=False).error == error
