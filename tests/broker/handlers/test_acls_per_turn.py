"""However many ACLs there are and are named, others have a turn after a bounded number of calls."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from odradek.common.acl import (
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol import messages

from .conftest import Bench
from .test_work_per_turn import CALLS_PER_TURN_MAX, Work, work

__all__ = ["work"]

ACLS = 5_000


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
    request = messages.DeleteAclsRequest
    return request(
        filters=[request.DeleteAclsFilter(**filter_fields(f"u{number}")) for number in range(20)]
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
