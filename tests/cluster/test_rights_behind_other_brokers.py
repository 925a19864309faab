"""Rights in a cluster: what only the controller does is done with the rights of the client that has
requested it, and not with those of the broker that has sent the request on; and rights that are
changed at one broker are what every broker goes by."""

from __future__ import annotations

import trio

from odradek.client import KafkaClient, connection_settings_of
from odradek.client.admin.acl_admin import AclAdmin
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
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing import Cluster

SECONDS_MAX = 60


def client_of(settings: dict[str, str]) -> KafkaClient:
    found = connection_settings_of(settings, lambda path: b"")
    assert found.bootstrap is not None
    return KafkaClient(found.bootstrap, found.client, authenticate=found.authenticate)


async def create_by_each_broker(settings: dict[str, str], prefix: str) -> dict[int, int]:
    """Have each broker create a topic; its error, by broker."""
    answers = {}
    request = messages.CreateTopicsRequest
    with trio.fail_after(SECONDS_MAX):
        async with client_of(settings) as client:
            for node in (await client.refresh_metadata()).nodes:
                topic = request.CreatableTopic(
                    name=f"{prefix}-{node}", num_partitions=1, replication_factor=1
                )
                answer = await client.send(node, request(topics=[topic], timeout_ms=30_000))
                answers[node] = answer.topics[0].error_code
    return answers


def test_every_broker_refuses_who_may_not_create_and_serves_who_may() -> None:
    with Cluster(2, sasl="PLAIN", acls=True) as cluster:
        settings = {}
        for name in ("reader", "creator"):
            user = cluster.add_user(name, f"{name}'s password")
            settings[name] = cluster.client_settings("confluent-kafka", user=user)
        cluster.allow("creator", "Create", topic="new-", prefixed=True)
        refused = trio.run(create_by_each_broker, settings["reader"], "new")
        assert set(refused.values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        made = trio.run(create_by_each_broker, settings["creator"], "new")
        assert set(made.values()) == {ErrorCode.NONE}
        assert len(refused) == len(made) == 2


async def follow_a_right(admin: dict[str, str], reader: dict[str, str]) -> None:
    """Give a right, take it away, and wait until every broker says so."""
    pattern = ResourcePattern(ResourceType.TOPIC, PatternType.LITERAL, "orders")
    right = AclBinding(pattern, AclEntry("User:reader", "*", Operation.DESCRIBE, Permission.ALLOW))
    known = AclFilter(*pattern, "User:reader", None, Operation.ANY, Permission.ANY)
    requested = messages.MetadataRequest(
        topics=[messages.MetadataRequest.MetadataRequestTopic(name="orders")],
        allow_auto_topic_creation=False,
    )
    with trio.fail_after(SECONDS_MAX):
        async with client_of(admin) as giver, client_of(reader) as client:
            nodes = list((await client.refresh_metadata()).nodes)

            async def wait_until(code: ErrorCode) -> None:
                for node in nodes:
                    while (await client.send(node, requested)).topics[0].error_code != code:
                        await trio.lowlevel.checkpoint()

            assert len(nodes) == 3
            await wait_until(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            await AclAdmin(giver).create([right])
            await wait_until(ErrorCode.NONE)
            await AclAdmin(giver).delete([known])
            await wait_until(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_a_right_that_is_changed_at_one_broker_is_so_at_all() -> None:
    with Cluster(3, sasl="PLAIN", acls=True) as cluster:
        cluster.create_topic("orders")
        reader = cluster.add_user("reader", "reader's password")
        settings = (
            cluster.client_settings("confluent-kafka", user=user) for user in (None, reader)
        )
        trio.run(follow_a_right, *settings)
