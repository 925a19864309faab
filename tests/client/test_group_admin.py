"""Groups and transactional ids are asked about at their coordinators, wherever these go."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from support.client_parts import NoChance
from support.scripted_cluster import SERVED, Received, ScriptedCluster, api_versions

from odradek.client import ClientSettings, KafkaClient
from odradek.client.admin.group_admin import GroupAdmin
from odradek.client.admin.group_descriptions import classic_group
from odradek.client.admin.transaction_admin import TransactionAdmin
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey

ASKED = {
    **SERVED,
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.LIST_TRANSACTIONS: (0, 0),
}


@pytest.fixture
def cluster(nursery) -> ScriptedCluster:
    cluster = ScriptedCluster(nursery, 1, 2)
    cluster.answer_all(ApiKey.API_VERSIONS, lambda received: api_versions(ASKED))
    return cluster


@pytest.fixture
def client(cluster) -> KafkaClient:
    return KafkaClient(
        cluster.bootstrap, ClientSettings(), connect=cluster.connect, random=NoChance()
    )


def coordinate(cluster: ScriptedCluster, where: Mapping[str, int]) -> None:
    """Let FindCoordinator say where keys are coordinated; elsewhere: not available."""
    make = messages.FindCoordinatorResponse

    def answer(received: Received) -> messages.FindCoordinatorResponse:
        return make(
            coordinators=[
                make.Coordinator(key=key, node_id=node, host=f"broker-{node}", port=9092)
                if (node := where.get(key, -1)) >= 0
                else make.Coordinator(key=key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
                for key in received.body.coordinator_keys
            ]
        )

    cluster.answer_all(ApiKey.FIND_COORDINATOR, answer)


def deleting(where: Mapping[str, int], node_id: int):
    """Let a broker delete the groups that it coordinates."""
    make = messages.DeleteGroupsResponse

    def answer(received: Received) -> messages.DeleteGroupsResponse:
        return make(
            results=[
                make.DeletableGroupResult(
                    group_id=name,
                    error_code=ErrorCode.NONE
                    if where.get(name) == node_id
                    else ErrorCode.NOT_COORDINATOR,
                )
                for name in received.body.groups_names
            ]
        )

    return answer


async def test_each_coordinator_is_queried_about_its_own(cluster, client, autojump_clock) -> None:
    where = {"a": 1, "b": 2, "c": 1}
    coordinate(cluster, where)
    for node_id, broker in cluster.brokers.items():
        broker.answers[ApiKey.DELETE_GROUPS] = deleting(where, node_id)
    async with client:
        outcomes = await GroupAdmin(client).delete(["a", "b", "c", "a"])
    assert outcomes == dict.fromkeys("abc", ErrorCode.NONE)
    assert [ask.groups_names for ask in cluster.brokers[1].requests_of(ApiKey.DELETE_GROUPS)] == [
        ["a", "c"]
    ]
    assert [ask.groups_names for ask in cluster.brokers[2].requests_of(ApiKey.DELETE_GROUPS)] == [
        ["b"]
    ]


async def test_a_coordinator_that_moved_is_found_again(cluster, client, autojump_clock) -> None:
    told, real = {"a": 1}, {"a": 2}
    coordinate(cluster, told)
    for node_id, broker in cluster.brokers.items():
        broker.answers[ApiKey.DELETE_GROUPS] = deleting(real, node_id)

    def move(received: Received) -> messages.DeleteGroupsResponse:
        told["a"] = 2
        return deleting(real, 1)(received)

    cluster.brokers[1].answers[ApiKey.DELETE_GROUPS] = move
    async with client:
        assert await GroupAdmin(client).delete(["a"]) == {"a": ErrorCode.NONE}


@pytest.mark.parametrize("dead", [1, 2])
async def test_another_broker_is_queried_where_one_is_gone(
    cluster, client, autojump_clock, dead: int
) -> None:
    where = {"a": 3 - dead}
    coordinate(cluster, where)
    for node_id, broker in cluster.brokers.items():
        broker.answers[ApiKey.DELETE_GROUPS] = deleting(where, node_id)
    async with client:
        await client.refresh_metadata()
        cluster.refusing = {dead}
        await cluster.brokers[dead].disconnect()
        assert await GroupAdmin(client).delete(["a"]) == {"a": ErrorCode.NONE}


async def test_a_coordinator_that_does_not_come_is_reported_in_the_end(
    cluster, client, autojump_clock
) -> None:
    coordinate(cluster, {})
    async with client:
        with pytest.raises(KafkaError) as refusal:
            await GroupAdmin(client, timeout_ms=2_000).delete(["a"])
    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "'a'" in str(refusal.value)


async def test_what_no_waiting_mends_is_reported_at_once(cluster, client, autojump_clock) -> None:
    make = messages.FindCoordinatorResponse
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    cluster.answer_all(
        ApiKey.FIND_COORDINATOR,
        lambda _: make(coordinators=[make.Coordinator(key="a", error_code=code)]),
    )
    async with client:
        with pytest.raises(KafkaError) as refusal:
            await GroupAdmin(client).describe(["a"])
    assert refusal.value.code is code
    assert (
        sum(len(each.requests_of(ApiKey.FIND_COORDINATOR)) for each in cluster.brokers.values())
        == 1
    )


@pytest.mark.parametrize("has_consumer_groups", [True, False])
async def test_groups_of_both_generations_are_described(
    cluster, client, autojump_clock, has_consumer_groups: bool
) -> None:
    served = dict(ASKED)
    if not has_consumer_groups:
        del served[ApiKey.CONSUMER_GROUP_DESCRIBE]
    cluster.answer_all(ApiKey.API_VERSIONS, lambda received: api_versions(served))
    coordinate(cluster, {"new": 1, "old": 1, "none": 1})
    make, make_old = messages.ConsumerGroupDescribeResponse, messages.DescribeGroupsResponse
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    cluster.answer_all(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        lambda received: make(
            groups=[
                make.DescribedGroup(
                    group_id=name,
                    error_code=ErrorCode.NONE if name == "new" else unknown,
                    group_state="Stable",
                    group_epoch=5,
                )
                for name in received.body.group_ids
            ]
        ),
    )
    cluster.answer_all(
        ApiKey.DESCRIBE_GROUPS,
        lambda received: make_old(
            groups=[
                make_old.DescribedGroup(
                    group_id=name,
                    error_code=ErrorCode.NONE if name == "old" else unknown,
                    group_state="Empty" if name == "old" else "Dead",
                )
                for name in received.body.groups
            ]
        ),
    )
    async with client:
        described = await GroupAdmin(client).describe(["new", "old", "none"])
    assert described["none"] is None
    assert described["old"] is not None
    assert (described["old"].type, described["old"].group_epoch) == ("classic", None)
    if has_consumer_groups:
        assert described["new"] is not None
        assert (described["new"].type, described["new"].group_epoch) == ("consumer", 5)


MEMBER = messages.DescribeGroupsResponse.DescribedGroupMember


def classic_members(protocol_type: str, *members: MEMBER):
    group = messages.DescribeGroupsResponse.DescribedGroup(
        group_id="g", group_state="Stable", protocol_type=protocol_type, members=list(members)
    )
    return classic_group(group, 1).members


def test_what_a_classic_member_reads_is_decoded() -> None:
    make = ConsumerProtocolAssignment.TopicPartition
    given = ConsumerProtocolAssignment(
        assigned_partitions=[
            make(topic="t", partitions=[2, 0]),
            make(topic="s", partitions=[1]),
        ],
        user_data=b"",
    )
    (member,) = classic_members(
        "consumer",
        MEMBER(
            member_id="m",
            member_metadata=ConsumerProtocolSubscription(topics=["t", "s"]).encode(version=1),
            member_assignment=given.encode(version=1),
        ),
    )
    assert member.topics == ("s", "t")
    assert member.assignment == member.target == (("s", 1), ("t", 0), ("t", 2))


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\xff\xff\xff", b"not what consumers say"])
@pytest.mark.parametrize("protocol_type", ["consumer", "connect", ""])
def test_what_a_member_did_not_say_as_consumers_do_is_left_out(
    data: bytes, protocol_type: str
) -> None:
    (member,) = classic_members(
        protocol_type, MEMBER(member_id="m", member_metadata=data, member_assignment=data)
    )
    assert (member.topics, member.assignment) == ((), ())


async def test_a_filter_that_a_broker_is_too_old_for_is_reported(
    cluster, client, autojump_clock
) -> None:
    async with client:
        with pytest.raises(Exception, match=r"cannot filter so: .* Kafka 4\.1"):
            await TransactionAdmin(client).list_transactions(pattern="x")
