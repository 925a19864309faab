"""What ACLs allow: each rule of Kafka's StandardAuthorizer, and any ACLs against a model."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.acl import (
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    camel,
)
from odradek.runtime.steps import run_at_once
from odradek.security.authorizer.acl_authorizer import AclAuthorizer, audit

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
ALICE, HOST = "User:alice", "10.0.0.1"


def topic(name: str, kind: PatternType = LITERAL) -> ResourcePattern:
    return ResourcePattern(ResourceType.TOPIC, kind, name)


def entry(
    operation: Operation = Operation.READ,
    permission: Permission = ALLOW,
    principal: str = ALICE,
    host: str = "*",
) -> AclEntry:
    return AclEntry(principal, host, operation, permission)


def made(*acls: tuple[ResourcePattern, AclEntry], allows: bool = False) -> AclAuthorizer:
    authorizer = AclAuthorizer(["User:root"], allows_without_acl=allows)
    for pattern in {each for each, _entry in acls}:
        authorizer.change(pattern, [one for each, one in acls if each == pattern])
    return authorizer


def reads(authorizer: AclAuthorizer, name: str = "orders", operation: str = "READ") -> bool:
    return authorizer.decide(ALICE, HOST, operation, "TOPIC", name).is_allowed


def test_nothing_is_allowed_without_an_acl_but_by_the_setting() -> None:
    assert not reads(made())
    assert reads(made(allows=True))
    assert not reads(made((topic("orders"), entry(principal="User:bob")), allows=True))
    assert reads(made((topic("other"), entry(principal="User:bob")), allows=True))


def test_super_users_may_do_all_whatever_is_denied() -> None:
    denial = entry(Operation.ALL, DENY, "User:*")
    decision = made((topic("*"), denial)).decide("User:root", HOST, "WRITE", "TOPIC", "orders")
    assert decision == (True, "SuperUser", None)


@pytest.mark.parametrize(
    ("pattern", "is_for"),
    [
        (topic("orders"), True),
        (topic("order"), False),
        (topic("ord", PREFIXED), True),
        (topic("orders", PREFIXED), True),
        (topic("orders-", PREFIXED), False),
        (topic("*"), True),
        (topic("*", PREFIXED), False),
        (ResourcePattern(ResourceType.GROUP, LITERAL, "orders"), False),
    ],
)
def test_patterns(pattern: ResourcePattern, is_for: bool) -> None:
    assert reads(made((pattern, entry()))) is is_for
    assert reads(made((pattern, entry(permission=DENY)), allows=True)) is not is_for


@pytest.mark.parametrize(
    ("one", "is_for"),
    [
        (entry(principal="User:*"), True),
        (entry(principal="User:bob"), False),
        (entry(principal="Group:alice"), False),
        (entry(host=HOST), True),
        (entry(host="10.0.0.2"), False),
        (entry(Operation.ALL), True),
        (entry(Operation.WRITE), False),
    ],
)
def test_entries(one: AclEntry, is_for: bool) -> None:
    assert reads(made((topic("orders"), one))) is is_for


@pytest.mark.parametrize("operation", Operation)
def test_what_implies_describing(operation: Operation) -> None:
    if operation is Operation.ANY:
        return
    describes = operation.name in ("ALL", "READ", "WRITE", "DELETE", "ALTER", "DESCRIBE")
    assert reads(made((topic("t"), entry(operation))), "t", "DESCRIBE") is describes
    configs = operation.name in ("ALL", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")
    assert reads(made((topic("t"), entry(operation))), "t", "DESCRIBE_CONFIGS") is configs


def test_a_denial_implies_nothing_and_counts_before_any_permission() -> None:
    both = made((topic("t"), entry(Operation.DESCRIBE)), (topic("t"), entry(permission=DENY)))
    assert reads(both, "t", "DESCRIBE")
    assert not reads(made((topic("t"), entry()), (topic("*"), entry(permission=DENY))), "t")
    assert not reads(
        made((topic("*"), entry()), (topic("t", PREFIXED), entry(permission=DENY))), "t"
    )


def test_a_change_counts_at_once() -> None:
    authorizer = made((topic("orders"), entry()))
    assert reads(authorizer)
    authorizer.change(topic("orders"), [])
    assert not reads(authorizer)
    assert list(authorizer.acls) == []


def test_somewhere() -> None:
    write = entry(Operation.WRITE)
    denial = entry(Operation.WRITE, DENY)

    def may(*acls: tuple[ResourcePattern, AclEntry], allows: bool = False) -> bool:
        authorizer = made(*acls, allows=allows)
        return run_at_once(authorizer.may_somewhere(ALICE, HOST, "WRITE", "TOPIC"))

    assert not may()
    assert may(allows=True)
    assert may((topic("a"), write))
    assert may((topic("a", PREFIXED), write), (topic("ab", PREFIXED), denial))
    assert not may((topic("ab"), write), (topic("a", PREFIXED), denial))
    assert not may((topic("a"), write), (topic("a"), denial))
    assert not may((topic("a"), write), (topic("*"), denial), allows=True)


@pytest.mark.parametrize(
    ("pattern_type", "name", "found"),
    [
        (PatternType.ANY, None, {"orders", "ord", "*", "other"}),
        (PatternType.ANY, "orders", {"orders"}),
        (PatternType.MATCH, "orders", {"orders", "ord", "*"}),
        (PatternType.LITERAL, None, {"orders", "*", "other"}),
        (PatternType.PREFIXED, None, {"ord"}),
        (PatternType.PREFIXED, "orders", set()),
    ],
)
def test_filters_of_patterns(pattern_type: PatternType, name: str | None, found: set[str]) -> None:
    patterns = [topic("orders"), topic("ord", PREFIXED), topic("*"), topic("other")]
    authorizer = made(*((each, entry()) for each in patterns))
    requested = AclFilter(
        ResourceType.ANY, pattern_type, name, None, None, Operation.ANY, Permission.ANY
    )
    assert {each.name for each in run_at_once(authorizer.matching(requested))} == found


def test_filters_of_entries() -> None:
    kept, other = entry(), entry(Operation.WRITE, DENY, "User:bob", HOST)
    authorizer = made((topic("t"), kept), (topic("t"), other))
    everything = AclFilter(
        ResourceType.ANY, PatternType.ANY, None, None, None, Operation.ANY, Permission.ANY
    )
    assert run_at_once(authorizer.matching(everything)) == {topic("t"): [kept, other]}
    for change in (
        {"principal": ALICE},
        {"host": "*"},
        {"operation": Operation.READ},
        {"permission": ALLOW},
    ):
        assert run_at_once(authorizer.matching(everything._replace(**change))) == {
            topic("t"): [kept]
        }
    assert not run_at_once(
        authorizer.matching(everything._replace(resource_type=ResourceType.GROUP))
    )


NAMES = st.text("ab", min_size=1, max_size=4) | st.just("*")
PATTERNS = st.builds(
    ResourcePattern,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from([LITERAL, PREFIXED]),
    NAMES,
)
ENTRIES = st.builds(
    AclEntry,
    st.sampled_from([ALICE, "User:bob", "User:*"]),
    st.sampled_from([HOST, "10.9.9.9", "*"]),
    st.sampled_from([each for each in Operation if each is not Operation.ANY]),
    st.sampled_from([ALLOW, DENY]),
)


@given(
    st.sets(st.tuples(PATTERNS, ENTRIES), max_size=8),
    st.text("ab", min_size=1, max_size=4),
    st.sampled_from(["READ", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER"]),
    st.booleans(),
)
def test_any_acls_decide_as_the_rules_say(
    acls: set[tuple[ResourcePattern, AclEntry]], name: str, operation: str, allows: bool
) -> None:
    """The model goes through all ACLs, in the words of Kafka's documentation."""
    implied = {
        "DESCRIBE": {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"},
        "DESCRIBE_CONFIGS": {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
    }
    for_name = [
        one
        for pattern, one in acls
        if pattern.resource_type is ResourceType.TOPIC
        and (
            pattern.name in (name, "*")
            if pattern.pattern_type is LITERAL
            else name.startswith(pattern.name)
        )
    ]
    mine = [e for e in for_name if e.principal in (ALICE, "User:*") and e.host in (HOST, "*")]
    denied = any(e.permission is DENY and e.operation.name in ("ALL", operation) for e in mine)
    enough = {"ALL", operation} | implied.get(operation, set())
    allowed = any(e.permission is ALLOW and e.operation.name in enough for e in mine)
    expected = not denied and (allowed or (allows and not for_name))
    assert reads(made(*acls, allows=allows), name, operation) is expected


class Calls:
    """Counts calls of functions, Python's and C's."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, _frame: FrameType, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self.count += 1


def calls_of(work: Callable[[], object]) -> int:
    calls = Calls()
    gc.disable()  # a collection calls what watches the garbage of other tests
    sys.setprofile(calls.note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls.count


def test_a_decision_does_not_look_at_the_thousands_of_acls_of_others() -> None:
    def calls(others: int) -> int:
        hosts = [entry(host=f"10.1.{number}.1") for number in range(others)]
        users = [entry(principal=f"User:u{number}") for number in range(others)]
        every = [*users, *hosts, entry(permission=DENY)]
        authorizer = made()
        for pattern in (topic("orders"), topic("*"), topic("or", PREFIXED)):
            authorizer.change(pattern, every)
        return calls_of(lambda: reads(authorizer))

    assert calls(2_000) == calls(2)


class Name(str):
    """One that knows how often parts of it were made."""

    parts = 0

    def __getitem__(self, key: Any) -> str:
        self.parts += 1
        return super().__getitem__(key)


def test_a_name_of_32_kb_is_looked_for_in_the_lengths_of_prefixes_and_not_remembered() -> None:
    authorizer = made((topic("ord", PREFIXED), entry()), (topic("xyz", PREFIXED), entry()))
    name = Name("ord" * 10_000)
    for expected in (1, 2):
        assert reads(authorizer, name)
        assert name.parts == expected


def test_somewhere_is_found_in_steps_and_without_comparing_all_with_all() -> None:
    def may(count: int) -> list[int]:
        acls = [(topic(f"t{number}"), entry(Operation.WRITE)) for number in range(count)]
        acls += [
            (topic(f"t{number}", PREFIXED), entry(Operation.WRITE, DENY)) for number in range(count)
        ]
        authorizer = made()
        for pattern, one in acls:
            authorizer.change(pattern, [one])
        steps = authorizer.may_somewhere(ALICE, HOST, "WRITE", "TOPIC")
        each = []
        while steps.gi_frame is not None:
            each.append(calls_of(lambda: next(steps, None)))
        return each

    few, many = may(100), may(200)
    assert max(many) < 100
    assert sum(many) < 3 * sum(few)


def test_names_as_kafka_writes_them() -> None:
    assert camel(ResourceType.TRANSACTIONAL_ID) == "TransactionalId"
    assert camel(Operation.DESCRIBE_CONFIGS) == "DescribeConfigs"
    assert camel(Permission.DENY) == "Deny"


def test_refusals_stand_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = made((topic("t"), entry(permission=DENY)))
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        decision = authorizer.decide(ALICE, HOST, "READ", "TOPIC", "t")
        audit(decision, (ALICE, HOST), "READ", ("TOPIC", "t"), "FETCH")
        audit(
            made().decide("User:root", HOST, "READ", "TOPIC", "t"),
            ("User:root", HOST),
            "READ",
            ("TOPIC", "t"),
            "FETCH",
        )
    (line,) = caplog.messages
    assert line.startswith(
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:t for request = Fetch with resourceRefCount = 1 based on rule MatchingAcl("
    )
