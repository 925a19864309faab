"""Each error that Kafka documents for the APIs of classic groups and offsets, over TCP."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from support.group_errors import group_error
from support.group_peer import SUBSCRIPTION, GroupPeer

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients
OWN_BROKER = True  # members subscribe to "orders", whose partitions are counted

OFFSETS = "__consumer_offsets"
SECONDS_MAX = 100.0
UNKNOWN_TOPIC_ID = bytes(range(16))


@pytest.fixture
def orders(peer: GroupPeer) -> str:
    """A topic of one partition."""
    peer.create_topic("orders")
    return "orders"


def alter(bootstrap: str, topic: str, **settings: str) -> None:
    """Set settings of a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    requested = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    (made,) = admin.incremental_alter_configs([requested]).values()
    made.result(SECONDS_MAX)


def error_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


# -- ids, and what is not there --------------------------------------------------------------


@group_error("INVALID_GROUP_ID", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")
@group_error("INVALID_GROUP_ID", "OffsetDelete")
def test_group_without_a_name_is_refused(peer: GroupPeer, orders: str) -> None:
    invalid = ErrorCode.INVALID_GROUP_ID
    assert error_of(peer.join("")) == invalid
    assert error_of(peer.sync("", "member", 1)) == invalid
    assert peer.heartbeat("", "member", 1) == invalid
    assert error_of(peer.leave("", "member")) == invalid
    assert error_of(peer.delete_offsets("", orders)) == invalid
    # Consumers of before names were needed commit for it, and so it can be described and go.
    assert peer.commit("", {(orders, 0): 1}) == {(orders, 0): ErrorCode.NONE}
    assert peer.fetch("").topics[0].partitions[0].committed_offset == 1
    assert (error_of(peer.describe("")), peer.state("")) == (ErrorCode.NONE, "Empty")
    assert peer.delete("") == ErrorCode.NONE


@group_error("GROUP_ID_NOT_FOUND", "DeleteGroups", "DescribeGroups", "OffsetDelete")
@group_error("GROUP_ID_NOT_FOUND", "OffsetCommit")
def test_group_that_does_not_exist_is_not_found(peer: GroupPeer, group: str, orders: str) -> None:
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert peer.delete(group) == missing
    assert error_of(peer.describe(group)) == missing
    assert error_of(peer.delete_offsets(group, orders)) == missing
    committed = peer.commit(group, {(orders, 0): 1}, member="member", generation=1)
    assert committed == {(orders, 0): missing}


@group_error("ILLEGAL_GENERATION", "OffsetCommit")
def test_older_clients_hear_of_an_illegal_generation_instead(
    peer: GroupPeer, group: str, orders: str
) -> None:
    committed = peer.commit(group, {(orders, 0): 1}, member="member", generation=1, version=8)
    assert committed == {(orders, 0): ErrorCode.ILLEGAL_GENERATION}
    assert error_of(peer.describe(group, version=5)) == ErrorCode.NONE
    assert peer.describe(group, version=5).group_state == "Dead"


@group_error("UNKNOWN_MEMBER_ID", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")
@group_error("UNKNOWN_MEMBER_ID", "OffsetCommit")
def test_member_that_nobody_knows_is_refused(peer: GroupPeer, group: str, orders: str) -> None:
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(peer.join(group, "nobody")) == unknown
    joined = peer.stable_alone(group)
    assert error_of(peer.join(group, "nobody")) == unknown
    assert error_of(peer.sync(group, "nobody", joined.generation_id)) == unknown
    assert peer.heartbeat(group, "nobody", joined.generation_id) == unknown
    left = peer.leave(group, "nobody")
    assert (error_of(left), error_of(left.members[0])) == (ErrorCode.NONE, unknown)
    generation = joined.generation_id
    committed = peer.commit(group, {(orders, 0): 1}, member="nobody", generation=generation)
    assert committed == {(orders, 0): unknown}
    assert peer.commit(group, {(orders, 0): 1}) == {(orders, 0): unknown}


@group_error("ILLEGAL_GENERATION", "SyncGroup", "Heartbeat", "OffsetCommit")
def test_generation_that_is_over_is_refused(peer: GroupPeer, group: str, orders: str) -> None:
    joined = peer.stable_alone(group)
    for generation in (joined.generation_id - 1, joined.generation_id + 1):
        illegal = ErrorCode.ILLEGAL_GENERATION
        assert error_of(peer.sync(group, joined.member_id, generation)) == illegal
        assert peer.heartbeat(group, joined.member_id, generation) == illegal
        committed = peer.commit(
            group, {(orders, 0): 1}, member=joined.member_id, generation=generation
        )
        assert committed == {(orders, 0): illegal}


@group_error("MEMBER_ID_REQUIRED", "JoinGroup")
def test_member_without_an_id_is_given_one_first(peer: GroupPeer, group: str) -> None:
    answer = peer.join(group)
    assert error_of(answer) == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("group-peer-")
    assert error_of(peer.join(f"{group}-old", version=3)) == ErrorCode.NONE


# -- joining ---------------------------------------------------------------------------------


@group_error("INVALID_SESSION_TIMEOUT", "JoinGroup")
def test_session_timeout_out_of_bounds_is_refused(peer: GroupPeer, group: str) -> None:
    for session_timeout_ms in (5_999, 1_800_001):
        answer = peer.join(group, session_timeout_ms=session_timeout_ms)
        assert error_of(answer) == ErrorCode.INVALID_SESSION_TIMEOUT
    for session_timeout_ms in (6_000, 1_800_000):
        answer = peer.join(group, session_timeout_ms=session_timeout_ms)
        assert error_of(answer) == ErrorCode.MEMBER_ID_REQUIRED


@group_error("INCONSISTENT_GROUP_PROTOCOL", "JoinGroup")
def test_member_without_a_protocol_in_common_is_refused(peer: GroupPeer, group: str) -> None:
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(peer.join(group, protocols={})) == inconsistent
    assert error_of(peer.join(group, protocol_type="")) == inconsistent
    peer.stable_alone(group)
    assert error_of(peer.join(group, protocols={"sticky": SUBSCRIPTION})) == inconsistent
    assert error_of(peer.join(group, protocol_type="connect")) == inconsistent


@group_error("INCONSISTENT_GROUP_PROTOCOL", "SyncGroup")
def test_sync_that_names_another_protocol_is_refused(peer: GroupPeer, group: str) -> None:
    joined = peer.join_alone(group)
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    who = (group, joined.member_id, joined.generation_id)
    assert error_of(peer.sync(*who, protocol_type="connect", protocol="range")) == inconsistent
    assert error_of(peer.sync(*who, protocol_type="consumer", protocol="other")) == inconsistent
    assert error_of(peer.sync(*who, protocol_type=None, protocol=None)) == inconsistent
    fitting = peer.sync(*who, protocol_type="consumer", protocol="range", leads=True)
    assert error_of(fitting) == ErrorCode.NONE


@group_error("GROUP_MAX_SIZE_REACHED", "JoinGroup")
def test_member_too_many_is_refused(start_broker, group: str) -> None:
    broker = start_broker(settings={"group.max.size": "1"})
    with GroupPeer(broker.port) as peer:
        peer.wait_for_coordinator(group)
        peer.stable_alone(group)
        answer = peer.join(group)
        if error_of(answer) == ErrorCode.MEMBER_ID_REQUIRED:
            answer = peer.join(group, answer.member_id)
        assert error_of(answer) == ErrorCode.GROUP_MAX_SIZE_REACHED


# -- rebalancing -----------------------------------------------------------------------------


@group_error("REBALANCE_IN_PROGRESS", "SyncGroup", "Heartbeat")
def test_members_are_called_back_while_the_group_rebalances(
    peer: GroupPeer, other: GroupPeer, group: str, orders: str
) -> None:
    joined = peer.stable_alone(group)
    other.send_join(group, other.member_id(group))
    wait_until(lambda: peer.state(group) == "PreparingRebalance")
    who = (group, joined.member_id, joined.generation_id)
    assert peer.heartbeat(*who) == ErrorCode.REBALANCE_IN_PROGRESS
    assert error_of(peer.sync(*who)) == ErrorCode.REBALANCE_IN_PROGRESS
    committed = peer.commit(group, {(orders, 0): 1}, member=who[1], generation=who[2])
    assert committed == {(orders, 0): ErrorCode.NONE}


@group_error("REBALANCE_IN_PROGRESS", "OffsetCommit")
def test_commit_between_two_assignments_is_refused(
    peer: GroupPeer, group: str, orders: str
) -> None:
    joined = peer.join_alone(group)
    committed = peer.commit(
        group, {(orders, 0): 1}, member=joined.member_id, generation=joined.generation_id
    )
    assert committed == {(orders, 0): ErrorCode.REBALANCE_IN_PROGRESS}


@group_error("FENCED_INSTANCE_ID", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")
@group_error("FENCED_INSTANCE_ID", "OffsetCommit")
def test_static_member_whose_place_was_taken_is_fenced(
    peer: GroupPeer, group: str, orders: str
) -> None:
    first = peer.join(group, instance="one")
    peer.sync(group, first.member_id, first.generation_id, instance="one", leads=True)
    second = peer.join(group, instance="one")
    assert error_of(second) == ErrorCode.NONE
    assert second.member_id != first.member_id
    fenced = ErrorCode.FENCED_INSTANCE_ID
    generation = second.generation_id
    assert error_of(peer.join(group, first.member_id, instance="one")) == fenced
    assert error_of(peer.sync(group, first.member_id, generation, instance="one")) == fenced
    assert peer.heartbeat(group, first.member_id, generation, instance="one") == fenced
    left = peer.leave(group, first.member_id, instance="one")
    assert error_of(left.members[0]) == fenced
    committed = peer.commit(
        group, {(orders, 0): 1}, member=first.member_id, generation=generation, instance="one"
    )
    assert committed == {(orders, 0): fenced}


# -- offsets ---------------------------------------------------------------------------------


@group_error("OFFSET_METADATA_TOO_LARGE", "OffsetCommit")
def test_more_words_than_may_be_kept_are_refused(peer: GroupPeer, group: str, orders: str) -> None:
    kept = peer.commit(group, {(orders, 0): 1}, metadata="m" * 4096)
    assert kept == {(orders, 0): ErrorCode.NONE}
    refused = peer.commit(group, {(orders, 0): 2}, metadata="m" * 4097)
    assert refused == {(orders, 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}


@group_error("UNKNOWN_TOPIC_OR_PARTITION", "OffsetCommit", "OffsetDelete")
def test_partition_that_does_not_exist_is_refused_beside_one_that_does(
    peer: GroupPeer, group: str, topic: str, orders: str
) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    requested = {(orders, 0): 3, (orders, 1): 3, (topic, 0): 3}
    assert peer.commit(group, requested) == {
        (orders, 0): ErrorCode.NONE,
        (orders, 1): unknown,
        (topic, 0): unknown,
    }
    answer = peer.delete_offsets(group, topic)
    assert error_of(answer) == ErrorCode.NONE
    assert error_of(answer.topics[0].partitions[0]) == unknown


@group_error("UNKNOWN_TOPIC_ID", "OffsetCommit", "OffsetFetch")
def test_topic_id_that_nobody_has_is_refused(peer: GroupPeer, group: str) -> None:
    commit, fetch = messages.OffsetCommitRequest, messages.OffsetFetchRequest
    partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = commit.OffsetCommitRequestTopic(topic_id=UNKNOWN_TOPIC_ID, partitions=[partition])
    answer = peer.ask(commit(group_id=group, topics=[topic]), 10)
    (answered,) = answer.topics
    assert answered.topic_id == UNKNOWN_TOPIC_ID
    assert error_of(answered.partitions[0]) == ErrorCode.UNKNOWN_TOPIC_ID

    requested = fetch.OffsetFetchRequestTopics(topic_id=UNKNOWN_TOPIC_ID, partition_indexes=[0])
    of_group = fetch.OffsetFetchRequestGroup(group_id=group, topics=[requested])
    (found,) = peer.ask(fetch(groups=[of_group]), 10).groups
    assert error_of(found) == ErrorCode.NONE
    assert error_of(found.topics[0].partitions[0]) == ErrorCode.UNKNOWN_TOPIC_ID


@group_error("GROUP_SUBSCRIBED_TO_TOPIC", "OffsetDelete")
def test_offsets_that_members_may_go_on_from_are_not_deleted(
    peer: GroupPeer, group: str, orders: str
) -> None:
    joined = peer.stable_alone(group)
    who = {"member": joined.member_id, "generation": joined.generation_id}
    peer.commit(group, {(orders, 0): 1}, **who)
    answer = peer.delete_offsets(group, orders)
    assert error_of(answer) == ErrorCode.NONE
    deleted = answer.topics[0].partitions[0]
    assert error_of(deleted) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


@group_error("NON_EMPTY_GROUP", "DeleteGroups", "OffsetDelete")
def test_group_with_members_is_not_deleted(peer: GroupPeer, group: str, orders: str) -> None:
    joined = peer.stable_alone(group, protocol_type="connect")
    assert peer.delete(group) == ErrorCode.NON_EMPTY_GROUP
    # Whose members are no consumers, nobody knows which topics they read.
    assert error_of(peer.delete_offsets(group, orders)) == ErrorCode.NON_EMPTY_GROUP
    peer.leave(group, joined.member_id)
    assert peer.delete(group) == ErrorCode.NONE


# -- the coordinator -------------------------------------------------------------------------


@group_error("INVALID_REQUEST", "FindCoordinator")
def test_coordinator_of_an_unknown_kind_is_refused(peer: GroupPeer, group: str) -> None:
    (found,) = peer.find(group, key_type=9).coordinators
    assert (error_of(found), found.node_id) == (ErrorCode.INVALID_REQUEST, -1)


@group_error("NOT_COORDINATOR", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")
@group_error("NOT_COORDINATOR", "OffsetCommit", "OffsetFetch", "OffsetDelete")
@group_error("NOT_COORDINATOR", "DeleteGroups", "DescribeGroups")
@group_error("NOT_COORDINATOR", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe")
def test_broker_that_coordinates_nothing_says_so(start_broker, group: str) -> None:
    broker = start_broker()
    not_here = ErrorCode.NOT_COORDINATOR
    with GroupPeer(broker.port) as peer:
        peer.create_topic("orders")
        # Nobody has asked for a coordinator: there is no topic of offsets.
        assert error_of(peer.join(group)) == not_here
        assert error_of(peer.sync(group, "member", 1)) == not_here
        assert peer.heartbeat(group, "member", 1) == not_here
        assert error_of(peer.leave(group, "member")) == not_here
        assert peer.commit(group, {("orders", 0): 1}) == {("orders", 0): not_here}
        assert error_of(peer.fetch(group)) == not_here
        assert error_of(peer.delete_offsets(group, "orders")) == not_here
        assert peer.delete(group) == not_here
        assert error_of(peer.describe(group)) == not_here
        assert error_of(peer.beat(group, "member")) == not_here
        assert error_of(peer.describe_consumer_group(group)) == not_here


@group_error("UNSTABLE_OFFSET_COMMIT", "OffsetFetch")
def test_offset_of_a_transaction_that_is_open_is_not_stable(
    broker, peer: GroupPeer, group: str, orders: str
) -> None:
    peer.commit(group, {(orders, 0): 1})
    settings = {"bootstrap.servers": broker.bootstrap, "log_level": 2}
    producer = Producer({**settings, "transactional.id": group})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    consumer = Consumer({**settings, "group.id": group})
    moved = [TopicPartition(orders, 0, 2)]
    producer.send_offsets_to_transaction(moved, consumer.consumer_group_metadata(), SECONDS_MAX)
    consumer.close()

    def fetch(*, require_stable: bool) -> tuple[ErrorCode, int]:
        found = peer.fetch(group, partitions={orders: [0]}, require_stable=require_stable)
        (partition,) = found.topics[0].partitions
        return error_of(partition), partition.committed_offset

    assert fetch(require_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert fetch(require_stable=False) == (ErrorCode.NONE, 1)
    producer.commit_transaction(SECONDS_MAX)
    wait_until(lambda: fetch(require_stable=True) == (ErrorCode.NONE, 2))


@group_error("INVALID_COMMIT_OFFSET_SIZE", "OffsetCommit")
def test_commit_larger_than_a_batch_may_be_is_refused(start_broker, group: str) -> None:
    broker = start_broker()
    with GroupPeer(broker.port) as peer:
        peer.create_topic("orders")
        peer.wait_for_coordinator(group)
        alter(broker.bootstrap, OFFSETS, max_message_bytes="1000")
        # Kafka has a code of its own for it, and since 4.0 says that it does not know.
        refused = {ErrorCode.INVALID_COMMIT_OFFSET_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR}

        def commit() -> ErrorCode:
            return peer.commit(group, {("orders", 0): 1}, metadata="m" * 4000)["orders", 0]

        wait_until(lambda: commit() != ErrorCode.NONE)
        assert commit() in refused
