"""ConsumerGroupHeartbeat and ConsumerGroupDescribe over the wire: versions and authorization."""

from __future__ import annotations

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

ORDERS = b"o" * 16


def beat(member_id: str = "m1", epoch: int = 0, **fields: object) -> object:
    return messages.ConsumerGroupHeartbeatRequest(
        **{
            "group_id": "group",
            "member_id": member_id,
            "member_epoch": epoch,
            "rebalance_timeout_ms": 30_000,
            "subscribed_topic_names": ["orders", "payments"],
            "topic_partitions": [],
            **fields,
        }
    )


def describe(**fields: object) -> object:
    return messages.ConsumerGroupDescribeRequest(group_ids=["group"], **fields)


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_is_described(handlers, version: int) -> None:
    joined = handlers.send(beat(), version).response
    assert (joined.error_code, joined.member_id) == (ErrorCode.NONE, "m1")
    (group,) = handlers.send(describe(), version).response.groups
    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Stable")
    (member,) = group.members
    assert member.subscribed_topic_names == ["orders", "payments"]
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.member_type == (1 if version else -1)


def test_who_may_not_read_the_group_is_refused(handlers) -> None:
    handlers.denied.add(("READ", "GROUP", "group"))
    answer = handlers.send(beat(), 1).response
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert answer.error_message is None  # only Kafka's coordinator says more
    handlers.denied.add(("DESCRIBE", "GROUP", "group"))
    (group,) = handlers.send(describe(), 1).response.groups
    assert group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert not handlers.groups.coordinator.consumer_groups


def test_who_may_not_know_of_a_topic_may_not_subscribe_to_it(handlers) -> None:
    handlers.denied.add(("DESCRIBE", "TOPIC", "payments"))
    answer = handlers.send(beat(), 1).response
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert answer.error_message is None
    allowed = handlers.send(beat(subscribed_topic_names=["orders"]), 1).response
    assert allowed.error_code == ErrorCode.NONE


def test_a_group_that_reads_a_secret_topic_is_not_described(handlers) -> None:
    handlers.send(beat(), 1)
    handlers.denied.add(("DESCRIBE", "TOPIC", "payments"))
    (group,) = handlers.send(describe(), 1).response.groups
    assert group.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (group.members, group.group_state) == ([], "")


def test_what_the_client_may_do_is_reported_on_request(handlers) -> None:
    handlers.send(beat(), 1)
    (group,) = handlers.send(describe(include_authorized_operations=True), 1).response.groups
    assert group.authorized_operations == sum(1 << bit for bit in (3, 6, 8, 10, 11))
    handlers.denied.add(("DELETE", "GROUP", "group"))
    (group,) = handlers.send(describe(include_authorized_operations=True), 1).response.groups
    assert group.authorized_operations == sum(1 << bit for bit in (3, 8, 10, 11))


@pytest.mark.parametrize("level", [0, 1])
def test_the_feature_switches_the_protocol(handlers, level: int) -> None:
    handlers.features.take_up({"group.version": level} if level else {}, 2)
    expected = ErrorCode.NONE if level else ErrorCode.UNSUPPORTED_VERSION
    assert handlers.send(beat(), 1).response.error_code == expected
    (group,) = handlers.send(describe(), 1).response.groups
    assert group.error_code == expected


def test_the_answer_waits_until_it_is_on_enough_replicas(handlers) -> None:
    handlers.groups.log.is_held = True
    reply = handlers.send(beat(), 1)
    assert reply.is_waiting
    handlers.groups.log.release()
    assert reply.response.member_epoch == 2


def test_a_topic_that_is_named_twice_counts_with_all_its_partitions(handlers) -> None:
    coordinator = handlers.groups.coordinator
    handlers.send(beat(subscribed_topic_names=["orders"]), 1)
    group = coordinator.consumer_groups[0]
    member = group.members["m1"]
    group.put_member(member._replace(assigned_partitions={ORDERS: {0: 2}}, previous_member_epoch=1))
    owned = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
    for partitions, expected in (
        ([[0]], ErrorCode.NONE),
        ([[0], [7]], ErrorCode.FENCED_MEMBER_EPOCH),
        ([[7], [0]], ErrorCode.FENCED_MEMBER_EPOCH),
    ):
        reported = [owned(topic_id=ORDERS, partitions=numbers) for numbers in partitions]
        request = beat(
            epoch=1,
            topic_partitions=reported,
            subscribed_topic_names=None,
            rebalance_timeout_ms=-1,
        )
        assert handlers.send(request, 1).response.error_code == expected
