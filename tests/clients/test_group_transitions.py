"""Each transition of a classic group that one broker can show, over TCP."""

from __future__ import annotations

import pytest
from support.group_errors import moves
from support.group_peer import GroupPeer

from odradek.common.errors import ErrorCode
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

PATIENT = {"group.initial.rebalance.delay.ms": "600000"}
"""A first rebalance that waits for members that come late."""


@moves("Empty", "PreparingRebalance")
def test_first_member_begins_a_rebalance(start_broker, group: str) -> None:
    broker = start_broker(settings=PATIENT)
    with GroupPeer(broker.port) as peer, GroupPeer(broker.port) as joining:
        peer.wait_for_coordinator(group)
        peer.commit(group, {("orders", 0): 1})
        joining.send_join(group, peer.member_id(group))
        wait_until(lambda: peer.state(group) == "PreparingRebalance")


@moves("PreparingRebalance", "CompletingRebalance")
@moves("CompletingRebalance", "Stable")
def test_group_is_stable_when_its_leader_has_assigned(peer: GroupPeer, group: str) -> None:
    joined = peer.join_alone(group)
    assert joined.leader == joined.member_id
    assert peer.state(group) == "CompletingRebalance"
    assert [member.member_id for member in peer.describe(group).members] == [joined.member_id]
    peer.sync(group, joined.member_id, joined.generation_id, leads=True)
    assert peer.state(group) == "Stable"
    assert peer.heartbeat(group, joined.member_id, joined.generation_id) == ErrorCode.NONE


@moves("Stable", "PreparingRebalance")
def test_new_member_begins_a_rebalance_that_ends_when_all_have_rejoined(
    peer: GroupPeer, other: GroupPeer, group: str
) -> None:
    joined = peer.stable_alone(group)
    other.send_join(group, other.member_id(group))
    wait_until(lambda: peer.state(group) == "PreparingRebalance")
    again = peer.join(group, joined.member_id)
    newcomer = other.receive_answer()
    assert again.generation_id == newcomer.generation_id == joined.generation_id + 1
    assert {member.member_id for member in again.members} == {
        joined.member_id,
        newcomer.member_id,
    }
    assert newcomer.members == []
    assert peer.state(group) == "CompletingRebalance"


@moves("CompletingRebalance", "PreparingRebalance")
def test_leader_that_leaves_before_its_assignment_begins_another_rebalance(
    peer: GroupPeer, other: GroupPeer, group: str
) -> None:
    joined = peer.stable_alone(group)
    other.send_join(group, other.member_id(group))
    wait_until(lambda: peer.state(group) == "PreparingRebalance")
    peer.join(group, joined.member_id)
    newcomer = other.receive_answer()
    assert peer.state(group) == "CompletingRebalance"
    other.send_sync(group, newcomer.member_id, newcomer.generation_id)
    peer.leave(group, joined.member_id)
    assert other.receive_answer().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert peer.state(group) == "PreparingRebalance"


@moves("PreparingRebalance", "Empty")
def test_group_that_everybody_left_is_empty(peer: GroupPeer, other: GroupPeer, group: str) -> None:
    joined = peer.stable_alone(group)
    newcomer = other.member_id(group)
    other.send_join(group, newcomer)
    wait_until(lambda: peer.state(group) == "PreparingRebalance")
    left = peer.leave(group, newcomer, joined.member_id)
    assert [member.error_code for member in left.members] == [ErrorCode.NONE] * 2
    assert peer.state(group) == "Empty"
    assert other.receive_answer().error_code == ErrorCode.UNKNOWN_MEMBER_ID


@moves("Empty", "Dead")
def test_deleted_group_is_dead(peer: GroupPeer, group: str) -> None:
    joined = peer.stable_alone(group)
    peer.leave(group, joined.member_id)
    assert peer.state(group) == "Empty"
    assert peer.delete(group) == ErrorCode.NONE
    assert peer.state(group) == "Dead"
