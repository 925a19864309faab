"""ACLs as command lines name them, and what is explained of them."""

from __future__ import annotations

import pytest

from odradek.cli.acls.acl_options import (
    Resource,
    Roles,
    bindings_of,
    filters_of,
    operation_of,
    options_for,
    principal_of,
    resources_of,
)
from odradek.cli.acls.explanation import ALLOW_EVERYONE, SUPER_USERS, explain
from odradek.cli.common.errors import CommandError
from odradek.common.acl import (
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
ORDERS = Resource(TOPIC, "orders")
NO_ROLES = Roles()


def acl(
    operation: Operation,
    permission: Permission = ALLOW,
    name: str = "orders",
    principal: str = "User:alice",
    host: str = "*",
    pattern_type: PatternType = LITERAL,
    kind: ResourceType = TOPIC,
) -> AclBinding:
    entry = AclEntry(principal, host, operation, permission)
    return AclBinding(ResourcePattern(kind, pattern_type, name), entry)


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("alice", "User:alice"),
        ("User:alice", "User:alice"),
        ("*", "User:*"),
        ("User:CN=shop,O=acme", "User:CN=shop,O=acme"),
        ("CN=shop:1", "User:CN=shop:1"),
    ],
)
def test_a_name_alone_is_a_users(text: str, principal: str) -> None:
    assert principal_of(text) == principal


@pytest.mark.parametrize("text", ["", "User:", ":alice"])
def test_what_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is no principal; write User:NAME"):
        principal_of(text)


@pytest.mark.parametrize("text", ["DescribeConfigs", "DESCRIBE_CONFIGS", "describe-configs"])
def test_operations_have_any_spelling(text: str) -> None:
    assert operation_of(text) is Operation.DESCRIBE_CONFIGS


def test_an_unknown_operation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CommandError, match="no operation 'any'; it is one of All, Read, Write,"):
        operation_of("any")


def test_kafkas_conveniences_are_what_kafka_acls_makes_of_them() -> None:
    resources = resources_of(["t"], ["g"], ["x"], None, None, False)
    roles = Roles(producer=True, idempotent=True)
    made = bindings_of(resources[::2], False, ["a"], None, None, None, roles)
    assert [(each.pattern[:1], each.entry.operation) for each in made] == [
        ((TOPIC,), Operation.WRITE),
        ((TOPIC,), Operation.DESCRIBE),
        ((TOPIC,), Operation.CREATE),
        ((TRANSACTIONAL_ID,), Operation.WRITE),
        ((TRANSACTIONAL_ID,), Operation.DESCRIBE),
        ((CLUSTER,), Operation.IDEMPOTENT_WRITE),
    ]
    made = bindings_of(resources[:2], True, ["a"], None, None, None, Roles(consumer=True))
    assert [(each.pattern, each.entry.operation) for each in made] == [
        ((TOPIC, PREFIXED, "t"), Operation.READ),
        ((TOPIC, PREFIXED, "t"), Operation.DESCRIBE),
        ((GROUP, PREFIXED, "g"), Operation.READ),
    ]


@pytest.mark.parametrize(
    ("resources", "operations", "roles", "sentence"),
    [
        ([], ["Read"], NO_ROLES, "say with what: --topic"),
        ([ORDERS], None, NO_ROLES, "say what: --operation NAME"),
        ([Resource(GROUP, "g")], None, Roles(producer=True), "--producer needs a --topic"),
        ([ORDERS], None, Roles(consumer=True), "--consumer needs a --topic and a --group"),
        ([ORDERS], ["Read"], Roles(idempotent=True), "--idempotent goes with --producer"),
        (
            [ORDERS, Resource(GROUP, "g")],
            None,
            Roles(producer=True),
            "--producer says nothing of group g",
        ),
    ],
)
def test_what_describes_no_acl_is_refused_with_what_is_missing(
    resources: list[Resource], operations: list[str] | None, roles: Roles, sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        bindings_of(resources, False, ["alice"], None, operations, None, roles)


def test_an_acl_without_a_principal_is_refused() -> None:
    with pytest.raises(CommandError, match="say who: --allow USER, or --deny USER"):
        bindings_of([ORDERS], False, None, None, ["Read"], None, NO_ROLES)


def test_a_removal_takes_all_that_is_left_out() -> None:
    by_principal = filters_of([], False, ["alice"], None, None, None, NO_ROLES)
    everything = (ResourceType.ANY, PatternType.ANY, None)
    assert by_principal == [AclFilter(*everything, "User:alice", None, Operation.ANY, ALLOW)]
    by_topic = filters_of([ORDERS], True, None, None, None, ["10.0.0.7"], NO_ROLES)
    assert by_topic == [
        AclFilter(TOPIC, PREFIXED, "orders", None, "10.0.0.7", Operation.ANY, Permission.ANY)
    ]
    with pytest.raises(CommandError, match="say which: --allow USER or --deny USER"):
        filters_of([], False, None, None, ["Read"], None, NO_ROLES)


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (acl(Operation.READ), "--allow User:alice --operation Read --topic orders"),
        (
            acl(Operation.ALL, DENY, "*", "User:*", "10.0.0.7"),
            "--deny 'User:*' --operation All --topic '*' --host 10.0.0.7",
        ),
        (
            acl(Operation.WRITE, name="x-", pattern_type=PREFIXED, kind=TRANSACTIONAL_ID),
            "--allow User:alice --operation Write --transactional-id x- --prefixed",
        ),
        (
            acl(Operation.IDEMPOTENT_WRITE, name="kafka-cluster", kind=CLUSTER),
            "--allow User:alice --operation IdempotentWrite --cluster",
        ),
    ],
)
def test_an_acl_is_described_by_the_options_that_name_it(made: AclBinding, options: str) -> None:
    assert options_for(made) == options


def test_a_denial_is_what_refuses_though_another_acl_allows() -> None:
    denial = acl(Operation.ALL, DENY, "ord", "User:*", pattern_type=PREFIXED)
    told = explain(("User:alice", None), Operation.WRITE, ORDERS, [acl(Operation.WRITE), denial])
    assert not told.decision.is_allowed
    assert told.decision.acl == denial
    assert told.reason.startswith("this ACL denies it: --deny 'User:*' --operation All")
    assert told.remedy == f"odradek acls remove {options_for(denial)}"
    assert dict(told.acls) == {acl(Operation.WRITE): "allows it", denial: "denies it"}


@pytest.mark.parametrize(
    ("present", "why"),
    [
        (acl(Operation.WRITE, principal="User:bob"), "another principal"),
        (acl(Operation.WRITE, host="10.0.0.7"), "another address"),
        (acl(Operation.READ), "another operation"),
    ],
)
def test_what_does_not_apply_is_explained(present: AclBinding, why: str) -> None:
    told = explain(("User:alice", None), Operation.WRITE, ORDERS, [present])
    assert not told.decision.is_allowed
    assert told.decision.acl is None
    assert told.acls == [(present, why)]
    assert told.reason == "no ACL that is for it allows this"
    assert told.remedy == "odradek acls add --allow User:alice --operation Write --topic orders"


def test_an_implied_operation_is_reported() -> None:
    told = explain(("User:alice", None), Operation.DESCRIBE, ORDERS, [acl(Operation.WRITE)])
    assert told.decision.is_allowed
    assert told.remedy is None
    assert [why for _, why in told.acls] == ["allows it: Write includes Describe"]


def test_rules_without_an_acl_are_reported() -> None:
    who = ("User:alice", "10.0.0.1")
    nothing = explain(who, Operation.READ, ORDERS, [])
    assert nothing.as_json()["rule"] == "DefaultDeny"
    assert nothing.reason == "no ACL is for it, and what no ACL allows is refused"
    everybody = explain(who, Operation.READ, ORDERS, [], allows_without_acl=True)
    assert (everybody.decision.is_allowed, everybody.as_json()["rule"]) == (True, "DefaultAllow")
    denial = acl(Operation.ALL, DENY)
    root = explain(who, Operation.READ, ORDERS, [denial], super_users=["User:alice"])
    assert (root.decision.is_allowed, root.as_json()["rule"]) == (True, "SuperUser")


def test_what_a_broker_does_not_tell_is_said_where_it_could_matter() -> None:
    def unless(*acls: AclBinding) -> list[str]:
        who = ("User:alice", None)
        told = explain(
            who, Operation.WRITE, ORDERS, acls, undisclosed=[SUPER_USERS, ALLOW_EVERYONE]
        )
        assert told.as_json()["unless"] == told.unless
        return told.unless

    assert unless() == [SUPER_USERS, ALLOW_EVERYONE]
    assert unless(acl(Operation.READ)) == [SUPER_USERS]
    assert unless(acl(Operation.ALL, DENY)) == [SUPER_USERS]
    assert unless(acl(Operation.WRITE)) == []
