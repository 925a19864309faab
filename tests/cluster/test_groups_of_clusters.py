"""What groups answer when their coordinator cannot write, is nowhere, or is another broker now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.broker_cluster import BrokerCluster
from support.cluster_topics import GROUP, coordinator
from support.group_errors import group_error, moves
from support.group_peer import GroupPeer

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

OFFSETS = "__consumer_offsets"
ONE_PARTITION = {"offsets_topic_num_partitions": "1", "group_initial_rebalance_delay_ms": "0"}
SECONDS_MAX = 120
REASSIGN_VERSION = 0

StartCluster = Callable[..., BrokerCluster]


def error_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


@group_error("COORDINATOR_NOT_AVAILABLE", "JoinGroup", "SyncGroup", "LeaveGroup")
@group_error("COORDINATOR_NOT_AVAILABLE", "OffsetCommit", "OffsetDelete", "DeleteGroups")
@group_error("COORDINATOR_NOT_AVAILABLE", "ConsumerGroupHeartbeat")
def test_coordinator_that_may_not_write_is_not_available(start_cluster: StartCluster) -> None:
    settings = {"offsets_topic_replication_factor": "3", "min_insync_replicas": "3"}
    cluster = start_cluster(**ONE_PARTITION, **settings)
    leader = coordinator(cluster, GROUP, "any")
    cluster.wait_in_sync(OFFSETS)
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with GroupPeer(cluster.ports[leader]) as peer:
        peer.wait_for_coordinator("any")
        peer.create_topic("orders")
        joined = peer.join_alone("completing")
        stable = peer.stable_alone("stable")
        static = peer.join("static", instance="one")
        peer.sync("static", static.member_id, static.generation_id, instance="one", leads=True)
        consumer = peer.join_consumer_group("consumers", "member")
        peer.commit("offsets", {("orders", 0): 1})
        victim = next(each for each in cluster.running if each != leader)
        cluster.brokers[victim].kill()
        wait_until(lambda: gone in peer.commit("offsets", {("orders", 0): 2}).values())
        assert error_of(peer.join("static", instance="one")) == gone
        who = ("completing", joined.member_id, joined.generation_id)
        assert error_of(peer.sync(*who, leads=True)) == gone
        who = {"member": stable.member_id, "generation": stable.generation_id}
        assert peer.commit("stable", {("orders", 0): 2}, **who) == {("orders", 0): gone}
        assert error_of(peer.delete_offsets("offsets", "orders")) == gone
        assert peer.delete("offsets") == gone
        assert error_of(peer.beat("consumers", "another")) == gone
        assert consumer > 0
        assert error_of(peer.leave("consumers", "member")) == gone
        # What was refused did not happen.
        (partition,) = peer.fetch("offsets").topics[0].partitions
        assert partition.committed_offset == 1


@group_error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator")
def test_group_whose_partition_has_no_leader_has_no_coordinator(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(**ONE_PARTITION, offsets_topic_replication_factor="1")
    leader = coordinator(cluster, GROUP, "any")
    other = next(each for each in cluster.running if each != leader)
    cluster.brokers[leader].kill()
    with GroupPeer(cluster.ports[other]) as peer:

        def has_none() -> bool:
            (found,) = peer.find("any").coordinators
            return error_of(found) == ErrorCode.COORDINATOR_NOT_AVAILABLE

        wait_until(has_none)


@moves("PreparingRebalance", "Dead")
@moves("CompletingRebalance", "Dead")
@moves("Stable", "Dead")
def test_groups_are_dead_where_they_are_no_longer_coordinated(start_cluster: StartCluster) -> None:
    cluster = start_cluster(**ONE_PARTITION, offsets_topic_replication_factor="1")
    first = coordinator(cluster, GROUP, "any")
    second = next(each for each in cluster.running if each != first)
    old = cluster.ports[first]
    with GroupPeer(old) as peer, GroupPeer(old) as joining, GroupPeer(old) as syncing:
        peer.wait_for_coordinator("any")
        stable = peer.stable_alone("stable")
        peer.stable_alone("preparing")
        joining.send_join("preparing", joining.member_id("preparing"))
        wait_until(lambda: peer.state("preparing") == "PreparingRebalance")
        leader = peer.stable_alone("completing")
        syncing.send_join("completing", syncing.member_id("completing"))
        wait_until(lambda: peer.state("completing") == "PreparingRebalance")
        peer.join("completing", leader.member_id)
        follower = syncing.receive_answer()
        syncing.send_sync("completing", follower.member_id, follower.generation_id)
        assert peer.state("completing") == "CompletingRebalance"

        move_offsets(cluster, second)

        gone = ErrorCode.NOT_COORDINATOR
        assert error_of(joining.receive_answer()) == gone
        assert error_of(syncing.receive_answer()) == gone
        who = (stable.member_id, stable.generation_id)
        assert peer.heartbeat("stable", *who) == gone
        assert error_of(peer.describe("stable")) == gone
    with GroupPeer(cluster.ports[second]) as peer:
        peer.wait_for_coordinator("any")
        assert peer.state("stable") == "Stable"
        assert peer.heartbeat("stable", *who) == ErrorCode.NONE


def move_offsets(cluster: BrokerCluster, broker_id: int) -> None:
    """Make a broker the only replica of the groups' partition."""
    make = messages.AlterPartitionReassignmentsRequest
    partition = make.ReassignablePartition(partition_index=0, replicas=[broker_id])
    topic = make.ReassignableTopic(name=OFFSETS, partitions=[partition])
    request = make(timeout_ms=SECONDS_MAX * 1000, topics=[topic])
    controller = cluster.view(cluster.running[0]).controller
    answer = cluster.ask(controller, request, REASSIGN_VERSION)
    assert answer.error_code == ErrorCode.NONE, answer

    def is_moved() -> bool:
        views = [cluster.view(each).topics[OFFSETS][0] for each in cluster.running]
        return all(view.replicas == (broker_id,) == (view.leader,) for view in views)

    wait_until(is_moved, SECONDS_MAX)
