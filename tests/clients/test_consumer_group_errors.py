"""Each error that Kafka documents for groups of the consumer protocol (KIP-848), over TCP."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from support.group_errors import group_error
from support.group_peer import GroupPeer

from odradek.common.errors import ErrorCode
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

LEAVING, LEAVING_STATIC = -1, -2


@pytest.fixture
def orders(peer: GroupPeer) -> str:
    """A topic of four partitions."""
    peer.create_topic("orders", 4)
    return "orders"


def new_member() -> str:
    """An id as clients make them."""
    return str(uuid.uuid4())


def error_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def joined(peer: GroupPeer, group: str, **fields: Any) -> tuple[str, int]:
    """A new member that owns what the coordinator gave it: its id and epoch."""
    member = new_member()
    answer = peer.beat(group, member, **fields)
    assert error_of(answer) == ErrorCode.NONE, answer.error_message
    return member, answer.member_epoch


# -- ConsumerGroupHeartbeat ------------------------------------------------------------------


@group_error("INVALID_REQUEST", "ConsumerGroupHeartbeat")
@pytest.mark.parametrize(
    "wrong",
    [
        {"group": ""},
        {"group": "  "},
        {"member": ""},
        {"epoch": -3},
        {"epoch": LEAVING_STATIC},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"subscribed_topic_names": None},
        {"topic_partitions": None},
        {"epoch": 1, "member": ""},
    ],
    ids=str,
)
def test_heartbeat_that_says_too_little_or_nonsense_is_refused(
    peer: GroupPeer, group: str, wrong: dict[str, Any]
) -> None:
    fields = {"group": group, "member": new_member(), "epoch": 0, **wrong}
    answer = peer.beat(fields.pop("group"), fields.pop("member"), fields.pop("epoch"), **fields)
    assert error_of(answer) == ErrorCode.INVALID_REQUEST
    assert answer.error_message


@group_error("UNKNOWN_MEMBER_ID", "ConsumerGroupHeartbeat")
def test_heartbeat_of_a_member_that_nobody_knows_is_refused(
    peer: GroupPeer, group: str, orders: str
) -> None:
    joined(peer, group)
    for epoch in (1, LEAVING):
        answer = peer.beat(group, new_member(), epoch)
        assert error_of(answer) == ErrorCode.UNKNOWN_MEMBER_ID
        assert answer.error_message


@group_error("GROUP_ID_NOT_FOUND", "ConsumerGroupHeartbeat")
def test_heartbeat_in_a_group_that_does_not_exist_is_refused(peer: GroupPeer, group: str) -> None:
    answer = peer.beat(group, new_member(), 1)
    assert error_of(answer) == ErrorCode.GROUP_ID_NOT_FOUND


@group_error("FENCED_MEMBER_EPOCH", "ConsumerGroupHeartbeat")
def test_member_of_another_epoch_is_fenced(peer: GroupPeer, group: str, orders: str) -> None:
    member, epoch = joined(peer, group)
    newer = peer.beat(group, member, epoch + 1)
    assert error_of(newer) == ErrorCode.FENCED_MEMBER_EPOCH
    assert newer.error_message
    # Others come and go, and the member follows to later epochs: only the last two may be its.
    latest = epoch
    for _ in range(2):
        passer_by, _ = joined(peer, group)
        peer.beat(group, passer_by, LEAVING)
        latest = follow(peer, group, member, latest, orders)
    older = peer.beat(group, member, epoch, topic_partitions=[])
    assert error_of(older) == ErrorCode.FENCED_MEMBER_EPOCH


def follow(peer: GroupPeer, group: str, member: str, epoch: int, topic: str) -> int:
    """Let a member reconcile until it has a later epoch; returns that."""
    owns = {peer.topic_id(topic): [0, 1, 2, 3]}
    latest = epoch

    def is_later() -> bool:
        nonlocal latest, owns
        answer = peer.beat(group, member, latest, topic_partitions=peer.owned(owns))
        assert error_of(answer) == ErrorCode.NONE, answer.error_message
        latest = answer.member_epoch
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            owns = {part.topic_id: list(part.partitions) for part in parts}
        return latest > epoch

    wait_until(is_later)
    return latest


@group_error("UNSUPPORTED_ASSIGNOR", "ConsumerGroupHeartbeat")
def test_assignor_that_the_broker_has_not_is_refused(peer: GroupPeer, group: str) -> None:
    answer = peer.beat(group, new_member(), server_assignor="sticky")
    assert error_of(answer) == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "sticky" in answer.error_message
    for assignor in ("uniform", "range"):
        answer = peer.beat(group, new_member(), server_assignor=assignor)
        assert error_of(answer) == ErrorCode.NONE


@group_error("UNRELEASED_INSTANCE_ID", "ConsumerGroupHeartbeat")
def test_instance_that_is_still_a_member_keeps_its_place(
    peer: GroupPeer, group: str, orders: str
) -> None:
    first, _ = joined(peer, group, instance_id="one")
    refused = peer.beat(group, new_member(), instance_id="one")
    assert error_of(refused) == ErrorCode.UNRELEASED_INSTANCE_ID
    left = peer.beat(group, first, LEAVING_STATIC, instance_id="one")
    assert (error_of(left), left.member_epoch) == (ErrorCode.NONE, LEAVING_STATIC)
    second, _ = joined(peer, group, instance_id="one")
    assert second != first


@group_error("FENCED_INSTANCE_ID", "ConsumerGroupHeartbeat")
@group_error("UNKNOWN_MEMBER_ID", "ConsumerGroupHeartbeat")
def test_instance_of_another_member_is_fenced(peer: GroupPeer, group: str, orders: str) -> None:
    joined(peer, group, instance_id="one")
    wrong = peer.beat(group, new_member(), 1, instance_id="one")
    assert error_of(wrong) == ErrorCode.FENCED_INSTANCE_ID
    unknown = peer.beat(group, new_member(), 1, instance_id="two")
    assert error_of(unknown) == ErrorCode.UNKNOWN_MEMBER_ID


@group_error("GROUP_MAX_SIZE_REACHED", "ConsumerGroupHeartbeat")
def test_member_too_many_is_refused(start_broker, group: str) -> None:
    broker = start_broker(settings={"group.consumer.max.size": "1"})
    with GroupPeer(broker.port) as peer:
        peer.wait_for_coordinator(group)
        joined(peer, group)
        answer = peer.beat(group, new_member())
        assert error_of(answer) == ErrorCode.GROUP_MAX_SIZE_REACHED


@group_error("INVALID_REGULAR_EXPRESSION", "ConsumerGroupHeartbeat")
def test_expression_that_is_none_is_refused(peer: GroupPeer, group: str) -> None:
    wrong = {"subscribed_topic_names": None, "subscribed_topic_regex": "orders("}
    answer = peer.beat(group, new_member(), **wrong)
    assert error_of(answer) == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "orders(" in answer.error_message


@group_error("REBALANCE_IN_PROGRESS", "JoinGroup")
def test_classic_member_that_waits_joins_again_when_its_group_is_upgraded(
    peer: GroupPeer, other: GroupPeer, broker, group: str, orders: str
) -> None:
    peer.stable_alone(group)
    other.send_join(group, other.member_id(group))
    wait_until(lambda: peer.state(group) == "PreparingRebalance")
    joined(peer, group)
    assert error_of(other.receive_answer()) == ErrorCode.REBALANCE_IN_PROGRESS


# -- ConsumerGroupDescribe -------------------------------------------------------------------


@group_error("GROUP_ID_NOT_FOUND", "ConsumerGroupDescribe")
def test_group_of_another_kind_or_none_is_not_described(peer: GroupPeer, group: str) -> None:
    missing = peer.describe_consumer_group(group)
    assert error_of(missing) == ErrorCode.GROUP_ID_NOT_FOUND
    assert group in missing.error_message
    peer.stable_alone(group)
    classic = peer.describe_consumer_group(group)
    assert error_of(classic) == ErrorCode.GROUP_ID_NOT_FOUND
    assert group in classic.error_message


@group_error("INVALID_GROUP_ID", "ConsumerGroupDescribe")
def test_group_without_a_name_is_not_described(peer: GroupPeer) -> None:
    assert error_of(peer.describe_consumer_group("")) == ErrorCode.INVALID_GROUP_ID


def test_consumer_group_is_described_as_dead_to_who_asks_for_classic_ones(
    peer: GroupPeer, group: str, orders: str
) -> None:
    joined(peer, group)
    classic = peer.describe(group)
    assert error_of(classic) == ErrorCode.GROUP_ID_NOT_FOUND
    assert group in classic.error_message


# -- offsets of members with an epoch --------------------------------------------------------


@group_error("STALE_MEMBER_EPOCH", "OffsetCommit", "OffsetFetch")
def test_commit_and_fetch_of_another_epoch_are_refused(
    peer: GroupPeer, group: str, orders: str
) -> None:
    member, epoch = joined(peer, group)
    stale = ErrorCode.STALE_MEMBER_EPOCH
    committed = peer.commit(group, {(orders, 0): 1}, member=member, generation=epoch + 1)
    assert committed == {(orders, 0): stale}
    assert error_of(peer.fetch(group, member=member, epoch=epoch + 1)) == stale
    committed = peer.commit(group, {(orders, 0): 1}, member=member, generation=epoch)
    assert committed == {(orders, 0): ErrorCode.NONE}
    found = peer.fetch(group, member=member, epoch=epoch)
    assert found.topics[0].partitions[0].committed_offset == 1


@group_error("UNKNOWN_MEMBER_ID", "OffsetCommit", "OffsetFetch")
def test_commit_and_fetch_of_a_member_that_nobody_knows_are_refused(
    peer: GroupPeer, group: str, orders: str
) -> None:
    joined(peer, group)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    committed = peer.commit(group, {(orders, 0): 1}, member="nobody", generation=1)
    assert committed == {(orders, 0): unknown}
    assert peer.commit(group, {(orders, 0): 1}) == {(orders, 0): unknown}
    assert error_of(peer.fetch(group, member="nobody", epoch=1)) == unknown


def test_group_that_does_not_exist_has_committed_nothing(peer: GroupPeer, group: str) -> None:
    for who in ({}, {"member": "nobody", "epoch": 1}):
        found = peer.fetch(group, **who)
        assert (error_of(found), found.topics) == (ErrorCode.NONE, [])
        found = peer.fetch(group, partitions={"orders": [0]}, **who)
        (partition,) = found.topics[0].partitions
        assert (error_of(partition), partition.committed_offset) == (ErrorCode.NONE, -1)


@group_error("GROUP_SUBSCRIBED_TO_TOPIC", "OffsetDelete")
@group_error("NON_EMPTY_GROUP", "DeleteGroups")
def test_what_members_may_need_is_not_deleted(peer: GroupPeer, group: str, orders: str) -> None:
    member, epoch = joined(peer, group)
    peer.commit(group, {(orders, 0): 1}, member=member, generation=epoch)
    deleted = peer.delete_offsets(group, orders)
    assert error_of(deleted) == ErrorCode.NONE
    part = deleted.topics[0].partitions[0]
    assert error_of(part) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert peer.delete(group) == ErrorCode.NON_EMPTY_GROUP
    peer.beat(group, member, LEAVING)
    assert peer.delete(group) == ErrorCode.NONE
