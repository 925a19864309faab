"""Transactions and idempotent producers where coordinator, leaders and groups are on brokers
of their own, some of which end in between."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from support.broker_cluster import BrokerCluster
from support.cluster_topics import (
    GROUP,
    TRANSACTION,
    coordinator,
    create_topic_on,
)
from support.raw_connection import RawConnection, build_batch
from support.transaction_peer import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TransactionPeer,
    settled,
)

from odradek.common.errors import ErrorCode as E
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "replica.fetch.wait.max.ms": "100",
    "replica.lag.time.max.ms": "1500",
}
SETTLE_SECONDS_MAX = 120.0
PREFERRED = 0
ELECT_VERSION = 2
OLD, NEW = 11, 12
"""Produce of clients that add partitions themselves, and of those that leave it to the broker."""

names = (f"made-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("between") / "cluster", None, SETTINGS) as running:
        yield running


@pytest.fixture
def whole(cluster: BrokerCluster) -> Iterator[BrokerCluster]:
    """The cluster, for a test that ends brokers; they run and lead again afterwards."""
    yield cluster
    for broker in cluster.brokers.values():
        if not broker.is_running:
            broker.start()
    cluster.wait_in_sync()
    elect = messages.ElectLeadersRequest(
        election_type=PREFERRED, topic_partitions=None, timeout_ms=60_000
    )
    answer = cluster.ask(1, elect, ELECT_VERSION)
    assert answer.error_code == E.NONE


def id_coordinated_by(cluster: BrokerCluster, kind: int, broker_id: int) -> str:
    """A transactional id, or a group, of which that broker is the coordinator."""
    for number in range(1000):
        name = f"{next(names)}-{number}"
        if coordinator(cluster, kind, name) == broker_id:
            return name
    raise AssertionError(f"broker {broker_id} coordinates nothing")


def wait_led(cluster: BrokerCluster, topic: str, broker_id: int) -> None:
    """Wait until a broker says that it leads partition 0."""
    wait_until(
        lambda: cluster.view(broker_id).topics[topic][0].leader == broker_id, SETTLE_SECONDS_MAX
    )


class Producer:
    """One transactional id, with a connection to each broker that it asks something of."""

    def __init__(self, cluster: BrokerCluster, transactional_id: str, broker_id: int) -> None:
        self.cluster = cluster
        self.main = TransactionPeer(cluster.brokers[broker_id].port, transactional_id).start()

    def at(self, broker_id: int) -> TransactionPeer:
        """The same producer, over a connection to another broker."""
        peer = TransactionPeer(self.cluster.brokers[broker_id].port, self.main.transactional_id)
        peer.producer_id, peer.producer_epoch = self.main.producer_id, self.main.producer_epoch
        return peer


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_leader_queries_a_coordinator_elsewhere(cluster: BrokerCluster, version: int) -> None:
    topic = next(names)
    create_topic_on(cluster, topic, (2, 3), (3, 2))
    producer = Producer(cluster, id_coordinated_by(cluster, TRANSACTION, 1), 1)
    writer = producer.at(2)
    if version == OLD:
        assert writer.write(topic, version=version) == E.TRANSACTION_ABORTABLE
        settled(lambda: tuple(producer.main.add_partitions({topic: [0]}).values()))
    assert settled(lambda: (writer.write(topic, version=version),))
    assert writer.write(topic, version=version) == E.NONE
    described = producer.main.describe()
    assert [(each.topic, list(each.partitions)) for each in described.topics] == [(topic, [0])]
    unknown = writer.producer_epoch + 1
    fenced = producer.at(3).write(topic, 1, version=version, producer_epoch=unknown)
    assert fenced == E.INVALID_PRODUCER_EPOCH
    end_version = 5 if version == NEW else 4
    settled(lambda: producer.main.end(committed=True, version=end_version))
    producer.main.wait_state("CompleteCommit")
    assert producer.at(2).wait_stable(topic) == 3


@pytest.mark.short
def test_markers_reach_every_leader(cluster: BrokerCluster) -> None:
    topic = next(names)
    create_topic_on(cluster, topic, (1, 2), (2, 3), (3, 1))
    producer = Producer(cluster, id_coordinated_by(cluster, TRANSACTION, 1), 1)
    for committed in (True, False):
        for partition, broker_id in enumerate((1, 2, 3)):
            peer = producer.at(broker_id)
            settled(lambda peer=peer, at=partition: (peer.write(topic, at, version=NEW),))
        settled(lambda end=committed: producer.main.end(committed=end, version=5))
        producer.main.wait_state("CompleteCommit", "CompleteAbort")
    for partition, broker_id in enumerate((1, 2, 3)):
        assert producer.at(broker_id).wait_stable(topic, partition) == 4
        (active,) = producer.at(broker_id).describe_producers(topic, partition).active_producers
        assert active.current_txn_start_offset == -1


def test_a_marker_goes_to_the_leader_of_then(whole: BrokerCluster) -> None:
    topic = next(names)
    create_topic_on(whole, topic, (3, 2))
    producer = Producer(whole, id_coordinated_by(whole, TRANSACTION, 1), 1)
    settled(lambda: (producer.at(3).write(topic, version=NEW),))
    whole.brokers[3].kill()
    # The follower may not have taken over yet: the marker waits for whoever leads next.
    settled(lambda: producer.main.end(committed=True, version=5))
    producer.main.wait_state("CompleteCommit")
    wait_led(whole, topic, 2)
    assert producer.at(2).wait_stable(topic) == 2


def test_a_partition_that_is_gone_needs_no_marker(cluster: BrokerCluster) -> None:
    kept, deleted = next(names), next(names)
    create_topic_on(cluster, kept, (2, 3))
    create_topic_on(cluster, deleted, (3, 2))
    producer = Producer(cluster, id_coordinated_by(cluster, TRANSACTION, 1), 1)
    settled(lambda: (producer.at(2).write(kept, version=NEW),))
    settled(lambda: (producer.at(3).write(deleted, version=NEW),))
    request = messages.DeleteTopicsRequest(topic_names=[deleted], timeout_ms=20_000)
    cluster.ask(1, request, 5)
    wait_until(lambda: deleted not in cluster.topics_in_tree(), SETTLE_SECONDS_MAX)
    wait_until(lambda: deleted not in cluster.view(1).topics, SETTLE_SECONDS_MAX)
    settled(lambda: producer.main.end(committed=True, version=5))
    producer.main.wait_state("CompleteCommit")
    assert producer.at(2).wait_stable(kept) == 2


def test_pending_offsets_go_where_the_groups_coordinator_goes(whole: BrokerCluster) -> None:
    topic = next(names)
    create_topic_on(whole, topic, (1, 2, 3))
    group = id_coordinated_by(whole, GROUP, 3)
    whole.wait_in_sync("__consumer_offsets", "__transaction_state")
    producer = Producer(whole, id_coordinated_by(whole, TRANSACTION, 1), 1)
    offsets = {(topic, 0): 5}
    settled(lambda: tuple(producer.at(3).commit_offsets(group, offsets, 5).values()))
    assert committed(whole, 3, group, topic) == (E.UNSTABLE_OFFSET_COMMIT, -1)
    whole.brokers[3].kill()
    heir = next(iter(coordinators(whole, group)))
    wait_until(
        lambda: committed(whole, heir, group, topic) == (E.UNSTABLE_OFFSET_COMMIT, -1),
        SETTLE_SECONDS_MAX,
    )
    assert settled(lambda: producer.main.end(committed=True, version=5))
    producer.main.wait_state("CompleteCommit")
    wait_until(lambda: committed(whole, heir, group, topic) == (E.NONE, 5), SETTLE_SECONDS_MAX)


def coordinators(cluster: BrokerCluster, group: str) -> Iterator[int]:
    """Who coordinates a group, once that is a broker that runs."""
    found: list[int] = []

    def is_running() -> bool:
        found[:] = [coordinator(cluster, GROUP, group)]
        return found[0] in cluster.running

    wait_until(is_running, SETTLE_SECONDS_MAX)
    yield found[0]


def committed(cluster: BrokerCluster, broker_id: int, group: str, topic: str) -> tuple[E, int]:
    """What a broker says that a group has committed for partition 0, if that is stable."""
    make = OffsetFetchRequest.OffsetFetchRequestTopic
    request = OffsetFetchRequest(
        group_id=group, topics=[make(name=topic, partition_indexes=[0])], require_stable=True
    )
    with RawConnection(cluster.brokers[broker_id].port) as connection:
        answer = connection.ask(request, OffsetFetchResponse, 7)
    if answer.error_code:
        return E(answer.error_code), -1
    found = answer.topics[0].partitions[0]
    return E(found.error_code), found.committed_offset


# --- Idempotence ---------------------------------------------------------------------------------


def produce(
    cluster: BrokerCluster, broker_id: int, topic: str, sequence: int, epoch: int = 0
) -> tuple[E, int]:
    """One batch of the idempotent producer 4711, of two records; its error and offset."""
    batch = build_batch(
        [b"a", b"b"],
        timestamp_ms=int(time.time() * 1000),
        producer_id=4711,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    make = ProduceRequest.TopicProduceData
    data = make.PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=20_000, topic_data=[make(name=topic, partition_data=[data])]
    )
    with RawConnection(cluster.brokers[broker_id].port) as connection:
        answer: Any = connection.ask(request, ProduceResponse, 9)
    (found,) = answer.responses[0].partition_responses
    return E(found.error_code), found.base_offset


def test_a_new_leader_recognises_what_the_former_one_took(whole: BrokerCluster) -> None:
    topic = next(names)
    create_topic_on(whole, topic, (3, 2, 1))
    for number in range(4):
        assert produce(whole, 3, topic, 2 * number) == (E.NONE, 2 * number)
    assert produce(whole, 3, topic, 0, epoch=1) == (E.NONE, 8)
    whole.brokers[3].kill()
    wait_led(whole, topic, 2)
    assert produce(whole, 2, topic, 0, epoch=1) == (E.NONE, 8), "a repetition"
    assert produce(whole, 2, topic, 4, epoch=1)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(whole, 2, topic, 8, epoch=0)[0] == E.INVALID_PRODUCER_EPOCH
    assert produce(whole, 2, topic, 2, epoch=1) == (E.NONE, 10)
    # And the former one does, of what it was told while it followed.
    whole.brokers[3].start()
    whole.wait_in_sync(topic)
    whole.brokers[2].kill()
    wait_led(whole, topic, 3)
    assert produce(whole, 3, topic, 2, epoch=1) == (E.NONE, 10)
    assert produce(whole, 3, topic, 4, epoch=1) == (E.NONE, 12)


def test_what_a_producer_did_outlives_a_restart_of_all(whole: BrokerCluster) -> None:
    topic = next(names)
    create_topic_on(whole, topic, (3, 2, 1))
    assert produce(whole, 3, topic, 0) == (E.NONE, 0)
    assert produce(whole, 3, topic, 2) == (E.NONE, 2)
    for broker in whole.brokers.values():
        broker.kill()
    for broker in whole.brokers.values():
        broker.start()
    whole.wait_in_sync(topic)
    leader = whole.agreed().topics[topic][0].leader
    assert produce(whole, leader, topic, 2) == (E.NONE, 2)
    assert produce(whole, leader, topic, 6)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(whole, leader, topic, 4) == (E.NONE, 4)


def test_an_open_transaction_stays_open_under_a_new_leader(whole: BrokerCluster) -> None:
    topic = next(names)
    create_topic_on(whole, topic, (3, 2))
    producer = Producer(whole, id_coordinated_by(whole, TRANSACTION, 1), 1)
    writer = producer.at(3)
    settled(lambda: (writer.write(topic, version=OLD + 1),))
    whole.brokers[3].kill()
    wait_led(whole, topic, 2)
    heir = producer.at(2)
    assert heir.end_offset(topic, isolation=READ_COMMITTED) == 0
    assert heir.end_offset(topic, isolation=READ_UNCOMMITTED) == 1
    (active,) = heir.describe_producers(topic).active_producers
    assert (active.current_txn_start_offset, active.last_sequence) == (0, 0)
