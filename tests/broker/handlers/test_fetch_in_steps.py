"""Fetches of many partitions at a whole broker, in sessions and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

TOPIC = "orders"
PARTITIONS = 300
VERSION = 11
Fetch = messages.FetchRequest


def topics(partitions: int) -> list[Fetch.FetchTopic]:
    each = [
        Fetch.FetchPartition(partition=n, partition_max_bytes=1 << 20) for n in range(partitions)
    ]
    return [Fetch.FetchTopic(topic=TOPIC, partitions=each)]


async def test_partitions_of_a_session_are_idle_once_they_were_answered(bench: Bench) -> None:
    await bench.create_topic(TOPIC, PARTITIONS)
    first = await bench.client.call(Fetch(session_epoch=0, topics=topics(PARTITIONS)), VERSION)
    assert [len(topic.partitions) for topic in first.responses] == [PARTITIONS]
    (session,) = bench.broker.fetch_sessions
    assert len(session.idle) == PARTITIONS
    assert not session.active
