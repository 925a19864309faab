"""A coordinator is killed at each step of a transaction's end; the next one brings it to the end.

Broker 1 stands still at one step (see `support.broken_broker`) and is killed there; the others,
which lead the transaction's partitions and follow its state, are sound.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from support.broker_cluster import BrokerCluster
from support.cluster_topics import GROUP, TRANSACTION, coordinator, create_topic_on
from support.exactly_once import read_all
from support.replicated_cluster import BrokenBrokerProcess
from support.transaction_peer import READ_COMMITTED, TransactionPeer, settled

from odradek.common.errors import ErrorCode as E
from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

KILLED = 1
LEADERS = {0: 2, 1: 3}
"""Of the topic's partitions."""
TOPIC = "topic"
OFFSET = 17
SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
FETCH_VERSION = 9


@contextmanager
def cluster_with(folder: Path, fault: str) -> Iterator[BrokerCluster]:
    """Three brokers, of which the first has a fault."""
    cluster = BrokerCluster(folder / "cluster", None, SETTINGS)
    cluster.brokers[KILLED] = BrokenBrokerProcess(cluster.brokers[KILLED], fault)
    with cluster:
        create_topic_on(cluster, TOPIC, *([leader] for leader in LEADERS.values()))
        yield cluster


def ended_transaction(cluster: BrokerCluster, *, committed: bool) -> TransactionPeer:
    """One with a record in each partition and an offset, that broker 1 was told to end."""
    peer = open_transaction(cluster)
    settled(lambda: peer.end(committed=committed))
    return peer


def open_transaction(cluster: BrokerCluster) -> TransactionPeer:
    """One that broker 1 coordinates, with an offset of a group that another does."""
    name = named(cluster, TRANSACTION, "transaction", {KILLED})
    group = named(cluster, GROUP, "group", {*LEADERS.values()})
    peer = TransactionPeer(cluster.brokers[KILLED].port, name).start()
    who = {"producer_id": peer.producer_id, "producer_epoch": peer.producer_epoch}
    for partition, leader in LEADERS.items():
        there = TransactionPeer(cluster.brokers[leader].port, name)
        there.end_offset(TOPIC, partition, isolation=READ_COMMITTED)  # waits for the leader
        settled(lambda to=there, at=partition: (to.write(TOPIC, at, version=12, **who),))
        there.close()
    there = TransactionPeer(cluster.brokers[coordinator(cluster, GROUP, group)].port, name)
    settled(lambda: list(there.commit_offsets(group, {(TOPIC, 0): OFFSET}, 5, **who).values()))
    there.close()
    return peer


def named(cluster: BrokerCluster, kind: int, name: str, brokers: set[int]) -> str:
    """The first name whose coordinator is one of these brokers."""
    return next(
        each
        for each in (f"{name}-{number}" for number in range(1000))
        if coordinator(cluster, kind, each) in brokers
    )


def is_stable(cluster: BrokerCluster, partition: int) -> bool:
    """Whether a partition has no open transaction."""
    peer = TransactionPeer(cluster.brokers[LEADERS[partition]].port, "nobody")
    stable, end = (peer.end_offset(TOPIC, partition, isolation=each) for each in (1, 0))
    peer.close()
    return stable == end


def kill_and_find_the_next(cluster: BrokerCluster, peer: TransactionPeer) -> TransactionPeer:
    """Kill the coordinator; returns the producer, connected to the next one."""
    cluster.brokers[KILLED].kill()
    found: list[int] = []

    def has_moved() -> bool:
        found[:] = [coordinator(cluster, TRANSACTION, peer.transactional_id)]
        return found != [KILLED]

    wait_until(has_moved)
    other = TransactionPeer(cluster.brokers[found[0]].port, peer.transactional_id)
    other.producer_id, other.producer_epoch = peer.producer_id, peer.producer_epoch
    settled(lambda: (E(other.describe().error_code),))
    return other


def check_ended(cluster: BrokerCluster, peer: TransactionPeer, *, committed: bool) -> None:
    """Check that the transaction came to this end, everywhere, and that its producer goes on."""
    peer.wait_state("CompleteCommit" if committed else "CompleteAbort")
    assert list(peer.describe().topics) == []
    bootstrap = [broker.bootstrap for key, broker in cluster.brokers.items() if key != KILLED]
    seen = read_all(bootstrap, TOPIC, len(LEADERS), "read_committed")
    assert seen == ({(0, 0): b"value", (1, 0): b"value"} if committed else {})
    groups = {committed_offset(cluster, f"group-{number}") for number in range(20)}
    assert groups == ({OFFSET, -1} if committed else {-1})
    former = peer.producer_epoch
    settled(peer.init)
    assert peer.producer_epoch > former


def committed_offset(cluster: BrokerCluster, group: str) -> int:
    """What the group has committed of partition 0, as a consumer asks that needs it stable."""
    fetch = messages.OffsetFetchRequest
    request = fetch(
        groups=[
            fetch.OffsetFetchRequestGroup(
                group_id=group,
                topics=[fetch.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])],
            )
        ],
        require_stable=True,
    )

    def ask() -> tuple[E, int]:
        broker_id = coordinator(cluster, GROUP, group)
        (answer,) = cluster.ask(broker_id, request, FETCH_VERSION).groups
        if answer.error_code:
            return E(answer.error_code), -1
        found = answer.topics[0].partitions[0]
        return E(found.error_code), found.committed_offset

    # The offsets of a transaction are told a little after its markers are acknowledged.
    return int(settled(ask, E.UNSTABLE_OFFSET_COMMIT)[1])


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_an_end_that_nobody_heard_of_is_sent(tmp_path: Path, committed: bool) -> None:
    with cluster_with(tmp_path, "no-markers") as cluster:
        peer = ended_transaction(cluster, committed=committed)
        assert peer.state == ("PrepareCommit" if committed else "PrepareAbort")
        assert not is_stable(cluster, 0)
        assert not is_stable(cluster, 1)
        check_ended(cluster, kill_and_find_the_next(cluster, peer), committed=committed)


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_partitions_that_were_not_reported_yet_are_reported(
    tmp_path: Path, committed: bool
) -> None:
    with cluster_with(tmp_path, "one-marker") as cluster:
        peer = open_transaction(cluster)
        # The group's partition would be the first; it is one of `__consumer_offsets`.
        first, *rest = sorted(
            (topic.topic, index) for topic in peer.describe().topics for index in topic.partitions
        )
        assert (TOPIC, 0) in rest
        settled(lambda: peer.end(committed=committed))
        wait_until(lambda: first not in left_of(peer))
        assert left_of(peer) == set(rest)
        assert not is_stable(cluster, 0)
        check_ended(cluster, kill_and_find_the_next(cluster, peer), committed=committed)


def left_of(peer: TransactionPeer) -> set[tuple[str, int]]:
    """The partitions that have no marker yet."""
    return {(topic.topic, index) for topic in peer.describe().topics for index in topic.partitions}


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_an_end_that_everybody_heard_of_is_completed(tmp_path: Path, committed: bool) -> None:
    with cluster_with(tmp_path, "no-completion") as cluster:
        peer = ended_transaction(cluster, committed=committed)
        wait_until(lambda: is_stable(cluster, 0) and is_stable(cluster, 1))
        assert peer.state == ("PrepareCommit" if committed else "PrepareAbort")
        check_ended(cluster, kill_and_find_the_next(cluster, peer), committed=committed)


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_a_transaction_that_is_open_goes_on_at_the_next_coordinator(
    tmp_path: Path, committed: bool
) -> None:
    with cluster_with(tmp_path, "no-markers") as cluster:
        peer = kill_and_find_the_next(cluster, open_transaction(cluster))
        assert peer.state == "Ongoing"
        settled(lambda: peer.end(committed=committed))
        check_ended(cluster, peer, committed=committed)


@pytest.mark.parametrize("fault", ["no-markers", "one-marker", "no-completion"])
def test_a_broker_alone_goes_on_with_what_it_had_decided(tmp_path: Path, fault: str) -> None:
    sound = BrokerProcess(tmp_path / "data", settings=SETTINGS, start=False)
    broken = BrokenBrokerProcess(sound, fault)
    broken.start()
    try:
        with KafkaAdminClient(bootstrap_servers=broken.bootstrap) as admin:
            requested = {"num_partitions": 2, "replication_factor": 1}
            admin.create_topics({TOPIC: requested}, wait_for_metadata=True)
        peer = TransactionPeer(broken.port, "transaction").start()
        for partition in range(2):
            peer.end_offset(TOPIC, partition, isolation=READ_COMMITTED)
            assert peer.write(TOPIC, partition, b"value", version=12) == E.NONE
        assert peer.end(committed=True).error == E.NONE
        assert peer.state == "PrepareCommit"
    finally:
        broken.kill()
    with sound:
        sound.start()
        again = TransactionPeer(sound.port, "transaction")
        again.find_coordinator()
        settled(lambda: (E(again.describe().error_code),))
        again.wait_state("CompleteCommit")
        seen = read_all([sound.bootstrap], TOPIC, 2, "read_committed")
        assert seen == {(0, 0): b"value", (1, 0): b"value"}
