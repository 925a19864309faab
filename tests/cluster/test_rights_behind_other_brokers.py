"""What only the controller does is done with the rights of the client that has requested it, and
not with those of the broker that has sent the request on."""

from __future__ import annotations

import trio

from odradek.client import KafkaClient, connection_settings_of
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing import Cluster

SECONDS_MAX = 60


async def create_by_each_broker(settings: dict[str, str], prefix: str) -> dict[int, int]:
    """Have each broker create a topic; its error, by broker."""
    found = connection_settings_of(settings, lambda path: b"")
    bootstrap = settings["bootstrap.servers"].split(",")
    answers = {}
    request = messages.CreateTopicsRequest
    with trio.fail_after(SECONDS_MAX):
        async with KafkaClient(bootstrap, found.client, authenticate=found.authenticate) as client:
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
