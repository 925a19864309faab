"""Every error that Kafka documents for the group APIs, and every transition, has its test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.group_errors import DOCUMENTED, TRANSITIONS, moved, provoked

TESTS = Path(__file__).parents[1]
OVER_TCP = (TESTS / "clients", TESTS / "cluster")

HANDLERS = "coordinator/test_group_handlers.py"
OF_OFFSETS = "coordinator/test_offsets_handlers.py"
OF_CONSUMERS = "coordinator/test_consumer_handlers.py"
GROUP_REFUSED, TOPIC_REFUSED = "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"
COMMITS_REFUSED = f"{OF_OFFSETS}::test_commits_of_those_who_may_not_are_refused"
MEMBERS_REFUSED = f"{OF_CONSUMERS}::test_who_may_not_read_the_group_is_refused"
AT_THE_SEAM: dict[tuple[str, str], str] = {
    **{
        (api, GROUP_REFUSED): f"{HANDLERS}::test_who_may_not_is_refused"
        for api in (
            *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetDelete"),
            *("DescribeGroups", "FindCoordinator"),
        )
    },
    ("DeleteGroups", GROUP_REFUSED): f"{HANDLERS}::test_delete_answers_for_each_group_once",
    ("OffsetCommit", GROUP_REFUSED): COMMITS_REFUSED,
    ("OffsetCommit", TOPIC_REFUSED): COMMITS_REFUSED,
    ("OffsetFetch", GROUP_REFUSED): (
        f"{OF_OFFSETS}::test_several_groups_are_described_in_the_order_requested"
    ),
    ("OffsetFetch", TOPIC_REFUSED): (
        f"{OF_OFFSETS}::test_offsets_of_topics_that_one_may_not_see_are_not_reported"
    ),
    ("OffsetDelete", TOPIC_REFUSED): f"{OF_OFFSETS}::test_delete_answers_for_each_partition",
    ("FindCoordinator", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"): (
        "coordinator/test_find_coordinator.py::"
        "test_coordinator_of_a_transactional_id_is_not_reported_to_who_may_not_use_it"
    ),
    ("ConsumerGroupHeartbeat", GROUP_REFUSED): MEMBERS_REFUSED,
    ("ConsumerGroupHeartbeat", TOPIC_REFUSED): (
        f"{OF_CONSUMERS}::test_who_may_not_know_of_a_topic_may_not_subscribe_to_it"
    ),
    ("ConsumerGroupDescribe", GROUP_REFUSED): MEMBERS_REFUSED,
    ("ConsumerGroupDescribe", TOPIC_REFUSED): (
        f"{OF_CONSUMERS}::test_a_group_that_reads_a_secret_topic_is_not_described"
    ),
}
"""There is no authorizer that could be asked over TCP: these tests deny where one would."""

STARTING = "a Kafka that has not started yet says so; odradek does not listen before it has"
NEVER: dict[tuple[str, str], str] = {
    **{
        (api, "COORDINATOR_NOT_AVAILABLE"): STARTING
        for api in (
            *("Heartbeat", "OffsetFetch", "DescribeGroups", "ListGroups"),
            "ConsumerGroupDescribe",
        )
    },
    ("DeleteGroups", "INVALID_GROUP_ID"): "the group without a name may be deleted",
    ("DescribeGroups", "INVALID_GROUP_ID"): "the group without a name may be described",
    ("JoinGroup", "UNSUPPORTED_VERSION"): "brokers of before 2.3 said so to static members",
    ("OffsetCommit", "FENCED_MEMBER_EPOCH"): "a commit of another epoch is STALE_MEMBER_EPOCH",
    ("OffsetCommit", "INVALID_GROUP_ID"): "the group without a name may commit",
    ("OffsetCommit", "INVALID_PRODUCER_ID_MAPPING"): "transactional commits have their own API",
    ("OffsetCommit", "INVALID_TXN_STATE"): "transactional commits have their own API",
    ("OffsetCommit", "REQUEST_TIMED_OUT"): "it is told as COORDINATOR_NOT_AVAILABLE",
    ("OffsetFetch", "GROUP_ID_NOT_FOUND"): "a group that does not exist has committed nothing",
    ("OffsetFetch", "INVALID_GROUP_ID"): "the group without a name may have offsets",
    ("OffsetFetch", "UNKNOWN_TOPIC_OR_PARTITION"): "a partition without a commit has offset -1",
    ("ListGroups", "TOPIC_AUTHORIZATION_FAILED"): "groups that one may not see are left out",
    ("FindCoordinator", "COORDINATOR_LOAD_IN_PROGRESS"): "who leads is known before it has read",
    ("FindCoordinator", "TRANSACTION_ABORTABLE"): "clients may be told so; no broker does",
    ("ConsumerGroupDescribe", "INVALID_REQUEST"): "nothing in it can be wrong",
}
"""What is documented, and what Apache Kafka 4.3.1 does not answer to anything either."""


@pytest.mark.parametrize("api", DOCUMENTED)
def test_every_documented_error_has_a_test_that_provokes_it(api: str) -> None:
    covered = provoked(*OVER_TCP) | AT_THE_SEAM.keys() | NEVER.keys()
    missing = {error for error in DOCUMENTED[api] if (api, error) not in covered}
    assert not missing


def test_no_error_is_said_to_be_impossible_that_a_test_provokes() -> None:
    assert not provoked(*OVER_TCP) & (AT_THE_SEAM.keys() | NEVER.keys())
    documented = {(api, error) for api, errors in DOCUMENTED.items() for error in errors}
    assert AT_THE_SEAM.keys() | NEVER.keys() <= documented


@pytest.mark.parametrize("test", sorted(set(AT_THE_SEAM.values())))
def test_tests_that_are_named_are_there(test: str) -> None:
    path, _, name = test.partition("::")
    functions = ast.walk(ast.parse((TESTS / path).read_text()))
    assert name in {node.name for node in functions if isinstance(node, ast.FunctionDef)}


def test_every_transition_has_a_test_that_makes_it() -> None:
    assert moved(*OVER_TCP) == TRANSITIONS
