"""Admin waits for brokers that hear of a change later than the one that it asks."""

from __future__ import annotations

import pytest
from support.client_parts import NoChance, partition, topic
from support.scripted_cluster import Received, ScriptedCluster

from odradek.client import ClientSettings, KafkaClient
from odradek.client.admin.admin import Admin
from odradek.client.errors import MetadataTimeoutError
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import MetadataResponse

BEHIND = 2


@pytest.fixture
def cluster(nursery) -> ScriptedCluster:
    cluster = ScriptedCluster(nursery, 1, BEHIND)
    cluster.topics["t"] = topic("t", partition(0, 1), partition(1, 1))
    return cluster


@pytest.fixture
def client(cluster) -> KafkaClient:
    return KafkaClient(
        cluster.bootstrap, ClientSettings(), connect=cluster.connect, random=NoChance()
    )


def lag(cluster: ScriptedCluster, answers: int) -> list[int]:
    """Let one broker say so often that the topic has one partition; returns how many it said."""
    said: list[int] = []

    def answer(received: Received) -> MetadataResponse:
        count = 1 if len(said) < answers else 2
        said.append(count)
        response = cluster.metadata(received)
        response.topics = [topic("t", *(partition(number, 1) for number in range(count)))]
        return response

    cluster.brokers[BEHIND].answers[ApiKey.METADATA] = answer
    return said


async def test_more_partitions_are_waited_for_at_every_broker(cluster, client, autojump_clock):
    said = lag(cluster, 3)
    async with client:
        await Admin(client).wait_for_topics(["t"], partitions_min=2)
    assert said[:4] == [1, 1, 1, 2]


async def test_a_broker_that_stays_behind_is_named(cluster, client, autojump_clock):
    lag(cluster, 10_000)
    async with client:
        with pytest.raises(MetadataTimeoutError, match=f"broker {BEHIND} does not know topic 't'"):
            await Admin(client).wait_for_topics(["t"], 5000, partitions_min=2)
