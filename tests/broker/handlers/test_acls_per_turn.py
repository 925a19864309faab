"""However many ACLs there are and are named, others have a turn after a bounded number of calls."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import cycle
from typing import Any

import pytest
from support.unsynced_store import UnsyncedStore
from support.work_per_turn import CALLS_PER_TURN_MAX, Work

from odradek.broker.dynamic_config.acl_manager import ENTRIES_MAX
from odradek.common.acl import (
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from odradek.common.errors import ErrorCode
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.protocol import messages

from .conftest import Bench
from .test_work_per_turn import work

__all__ = ["work"]

ACLS = 5_000
FEWER = 200


@pytest.fixture
def settings() -> dict[str, str]:
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def filter_fields(name: str | None) -> dict[str, Any]:
    return {
        "resource_type_filter": ResourceType.TOPIC,
        "resource_name_filter": name,
        "pattern_type_filter": PatternType.LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }


def many_filters() -> Any:
    """None names a topic: each looks at all there are."""
    request = messages.DeleteAclsRequest
    fields = filter_fields(None)
    return request(
        filters=[
            request.DeleteAclsFilter(**{**fields, "principal_filter": f"User:u{number}"})
            for number in range(20)
        ]
    )


def all_acls() -> Any:
    return messages.DescribeAclsRequest(**filter_fields(None))


def refused_creations() -> Any:
    request = messages.CreateAclsRequest
    return request(
        creations=[
            request.AclCreation(
                resource_type=ResourceType.TOPIC,
                resource_name=f"u{number}",
                resource_pattern_type=PatternType.ANY,
                principal="User:alice",
                host="*",
                operation=Operation.READ,
                permission_type=Permission.ALLOW,
            )
            for number in range(2_000)
        ]
    )


def creations(names: Iterable[str], count: int) -> Any:
    """Of so many ACLs, shared among topics."""
    request = messages.CreateAclsRequest
    topics = cycle(names)
    return request(
        creations=[
            request.AclCreation(
                resource_type=ResourceType.TOPIC,
                resource_name=next(topics),
                resource_pattern_type=PatternType.LITERAL,
                principal=f"User:u{number}",
                host="*",
                operation=Operation.READ,
                permission_type=Permission.ALLOW,
            )
            for number in range(count)
        ]
    )


def exact_filters(name: str, count: int) -> Any:
    """One for each ACL of a topic."""
    request = messages.DeleteAclsRequest
    fields = filter_fields(name)
    return request(
        filters=[
            request.DeleteAclsFilter(
                **{**fields, "principal_filter": f"User:u{number}", "host_filter": "*"}
            )
            for number in range(count)
        ]
    )


async def answer(bench: Bench, work: Work, request: Any) -> Any:
    """The answer to a request; what it takes until then is counted."""
    schema = type(request)
    body = b"".join(bytes(part) for part in schema.encoder(3)(request))
    client = bench.another_client()
    with work.counted():
        client.send_encoded(body, 3, schema.api_key)
        while not client.connection.output:
            await client.woken()
    return await client.receive(schema.api_key, 3)


async def fill(bench: Bench, count: int) -> None:
    """Have so many ACLs of one topic that no request names them."""
    acls = bench.broker.dispatcher.context.acls
    assert acls is not None
    pattern = ResourcePattern(ResourceType.TOPIC, PatternType.LITERAL, "t")
    read, allow = Operation.READ, Permission.ALLOW
    await acls.add(pattern, [AclEntry(f"User:x{n}", "*", read, allow) for n in range(count)])


async def test_thousands_of_acls_of_a_pattern_are_made_found_and_removed_in_steps(
    bench: Bench, work: Work
) -> None:
    await fill(bench, ENTRIES_MAX - FEWER)
    await answer(bench, work, creations(["warm-up"], 1))
    created = await answer(bench, work, creations(["t"], FEWER))
    assert {each.error_code for each in created.results} == {0}
    await work.check()
    of_topic = messages.DescribeAclsRequest(**filter_fields("t"))
    described = await answer(bench, work, of_topic)
    assert len(described.resources[0].acls) == ENTRIES_MAX
    await work.check()
    removed = await answer(bench, work, exact_filters("t", FEWER))
    assert [len(each.matching_acls) for each in removed.filter_results] == [1] * FEWER
    await work.check()
    described = await bench.client.call(of_topic, 3)
    assert len(described.resources[0].acls) == ENTRIES_MAX - FEWER


@pytest.mark.parametrize("names", [["t"], [f"t{number}" for number in range(40)]])
async def test_twice_as_many_acls_cost_twice_as_much(
    bench: Bench, work: Work, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # While a thread syncs the file the onlooker has turns that would count.
    monkeypatch.setattr(EmbeddedStore, "_sync", UnsyncedStore._sync)
    await answer(bench, work, creations(["warm-up"], 1))
    costs = []
    for count in (FEWER, 2 * FEWER):
        await answer(bench, work, creations([f"{name}-{count}" for name in names], count))
        created = work.total
        await answer(bench, work, exact_filters(f"{names[0]}-{count}", count))
        costs.append((created, work.total))
    for fewer, more in zip(*costs, strict=True):
        assert more < 3 * fewer


async def test_a_filter_that_comes_again_finds_what_the_first_has_left(bench: Bench) -> None:
    await bench.client.call(creations(["t"], 3), 3)
    request = messages.DeleteAclsRequest
    everything = request.DeleteAclsFilter(**filter_fields("t"))
    one = exact_filters("t", 1).filters[0]
    removed = await bench.client.call(request(filters=[one, everything, everything]), 3)
    principals = [[acl.principal for acl in each.matching_acls] for each in removed.filter_results]
    assert principals == [["User:u0"], ["User:u1", "User:u2"], []]


async def test_a_pattern_with_too_many_acls_is_refused_and_others_are_not(bench: Bench) -> None:
    await fill(bench, ENTRIES_MAX)
    one_more = creations(["t", "other"], 2)
    one_more.creations[0].principal = "User:another"
    created = await bench.client.call(one_more, 3)
    assert [each.error_code for each in created.results] == [ErrorCode.INVALID_REQUEST, 0]
    described = await bench.client.call(messages.DescribeAclsRequest(**filter_fields(None)), 3)
    assert {each.resource_name: len(each.acls) for each in described.resources} == {
        "t": ENTRIES_MAX,
        "other": 1,
    }


@pytest.mark.parametrize("make", [many_filters, all_acls, refused_creations])
async def test_acls_are_looked_for_and_read_in_steps(bench: Bench, work: Work, make: Any) -> None:
    acls = bench.broker.dispatcher.context.acls
    assert acls is not None
    entry = AclEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
    for number in range(ACLS):
        pattern = ResourcePattern(ResourceType.TOPIC, PatternType.LITERAL, f"t{number}")
        acls.authorizer.change(pattern, {entry})
    request = make()
    api_key = type(request).api_key
    body = b"".join(bytes(part) for part in type(request).encoder(3)(request))
    await bench.another_client().call(request, 3)
    client = bench.another_client()
    work.most = work.total = 0
    sys.setprofile(work.profile)
    client.send_encoded(body, 3, api_key)
    while not client.connection.output:
        await client.woken()
    sys.setprofile(None)
    assert work.total > 2 * CALLS_PER_TURN_MAX, "the request is long"
    assert work.most <= CALLS_PER_TURN_MAX
