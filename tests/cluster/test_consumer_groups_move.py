"""A consumer group moves with the leader of its partition: members go on as if nothing was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing

from support.broker_cluster import BrokerCluster
from support.consumer_group_peer import Peer
from support.group_peer import NOT_YET

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

GROUP = "moving"
OFFSETS = "__consumer_offsets"
PREFERRED = 0
LONG_MS = "600000"
"""Nothing passes by itself, however long a test takes."""
SETTINGS = {
    "offsets_topic_replication_factor": "3",
    "offsets_topic_num_partitions": "1",
    "min_insync_replicas": "1",
    "group_consumer_session_timeout_ms": LONG_MS,
    "group_consumer_max_session_timeout_ms": LONG_MS,
    "group_consumer_max_assignment_interval_ms": LONG_MS,
}


def coordinator_of(cluster: BrokerCluster) -> int:
    """The broker that every running broker names as the group's coordinator."""
    named: set[int] = set()

    def all_agree() -> bool:
        named.clear()
        for broker_id in cluster.running:
            with closing(Peer(cluster.ports[broker_id], GROUP)) as peer:
                (found,) = peer.connection.find(GROUP).coordinators
                named.add(found.node_id)
        return len(named) == 1 and named <= set(cluster.running)

    wait_until(all_agree, otherwise="the brokers do not agree on a coordinator")
    (broker_id,) = named
    return broker_id


def test_members_go_on_in_their_epochs_with_another_coordinator(
    start_cluster: Callable[..., BrokerCluster],
) -> None:
    cluster = start_cluster(**SETTINGS)
    former = coordinator_of(cluster)
    with closing(Peer(cluster.ports[former], GROUP)) as peer:
        topic_id = peer.create_topic("orders", 4)
        peer.configure(assignment_interval_ms="0")
        assert peer.join("m1", "orders").epoch == 2
        assert peer.join("m2", "orders").epoch == 3
        assert peer.heartbeat("m1", 2).assignment == {topic_id: {0, 1}}
        assert peer.heartbeat("m1", 2, owned={topic_id: [0, 1]}).epoch == 3
        assert peer.heartbeat("m2", 3).assignment == {topic_id: {2, 3}}
        assert peer.commit("orders", 0, 42, member_id="m1", epoch=3) == ErrorCode.NONE
        group_epoch = peer.describe().group_epoch
    cluster.brokers[former].kill()
    current = coordinator_of(cluster)
    assert current != former
    with closing(Peer(cluster.ports[current], GROUP)) as peer:
        for member_id in ("m1", "m2"):
            answer = peer.heartbeat(member_id, 3)
            assert (answer.error, answer.epoch, answer.assignment) == (ErrorCode.NONE, 3, None)
        assert peer.fetch("orders", 0, member_id="m1", epoch=3) == (ErrorCode.NONE, 42)
        assert peer.describe().group_epoch == group_epoch
        assert peer.join("m3", "orders").epoch == group_epoch + 1
    cluster.brokers[former].start()
    assert coordinator_of(cluster) == current
    with closing(Peer(cluster.ports[former], GROUP)) as peer:
        answer = peer.connection.beat(GROUP, "m1", 3)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR


def elect_preferred(cluster: BrokerCluster) -> None:
    """Let the partition's first replica lead it again, once it is in sync."""
    request = messages.ElectLeadersRequest

    def is_done() -> bool:
        with closing(Peer(cluster.ports[cluster.running[0]], GROUP)) as peer:
            partitions = [request.TopicPartitions(topic=OFFSETS, partitions=[0])]
            answer = peer.ask(
                request(election_type=PREFERRED, topic_partitions=partitions, timeout_ms=10_000), 2
            )
        (topic,) = answer.replica_election_results
        return topic.partition_result[0].error_code in (
            ErrorCode.NONE,
            ErrorCode.ELECTION_NOT_NEEDED,
        )

    wait_until(is_done, otherwise="the first replica does not lead again")


def test_groups_of_every_state_leave_a_broker_that_does_not_lead_them_any_more(
    start_cluster: Callable[..., BrokerCluster],
) -> None:
    cluster = start_cluster(**SETTINGS)
    preferred = coordinator_of(cluster)
    cluster.brokers[preferred].kill()
    current = coordinator_of(cluster)
    with ExitStack() as stack:
        peers = {
            state: stack.enter_context(closing(Peer(cluster.ports[current], state)))
            for state in ("Empty", "Assigning", "Reconciling", "Stable")
        }
        peers["Empty"].create_topic("orders", 4)
        for state, peer in peers.items():
            peer.configure(assignment_interval_ms="0")
            peer.join("m1", "orders")
            if state == "Empty":
                peer.leave("m1")
            if state == "Assigning":
                peer.configure(assignment_interval_ms=LONG_MS)
            if state in ("Assigning", "Reconciling"):
                peer.join("m2", "orders")
            assert peer.state == state
        cluster.brokers[preferred].start()
        elect_preferred(cluster)
        wait_until(lambda: coordinator_of(cluster) == preferred)
        for peer in peers.values():
            wait_until(lambda peer=peer: peer.describe().error_code == ErrorCode.NOT_COORDINATOR)
    for state in peers:
        with closing(Peer(cluster.ports[preferred], state)) as peer:
            peer.find_coordinator()
            wait_until(lambda peer=peer: peer.describe().error_code not in NOT_YET)
            assert peer.state == state
