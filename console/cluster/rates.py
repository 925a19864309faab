"""How many records are written per second: partitions' ends, looked at twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ...client.consumer.offsets import list_offsets
from ...common.sentinels import LATEST_TIMESTAMP

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from .cluster_reader import ClusterReader

TopicPartition = tuple[str, int]


class WriteRates:
    """Counts for whoever looks; while nobody does, nothing is asked.

    Args:
        client: of the cluster.
        cluster: its topics.
    """

    PARTITIONS_MAX = 2_000
    """Of a larger cluster the first so many are counted."""
    INTERVAL_MS = 1_000
    FORGET_AFTER_MS = 15_000
    """Two looks further apart make no rate that anybody sees."""

    def __init__(self, client: KafkaClient, cluster: ClusterReader) -> None:
        self._client = client
        self._cluster = cluster
        self._at_ms = 0
        self._ends: dict[TopicPartition, int] = {}
        self._rates: dict[str, float] = {}
        self._reading = trio.Lock()

    async def read(self) -> dict[str, object]:
        """The rate of the cluster, and of its busiest topics.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        async with self._reading:
            now_ms = self._client.clock.monotonic_ms()
            if now_ms - self._at_ms >= self.INTERVAL_MS:
                await self._look(now_ms)
        busiest = sorted(self._rates.items(), key=lambda each: (-each[1], each[0]))[:8]
        return {
            "total": round(sum(self._rates.values()), 1),
            "topics": [[name, round(rate, 1)] for name, rate in busiest if rate > 0],
        }

    async def _look(self, now_ms: int) -> None:
        snapshot = await self._cluster.snapshot()
        offline = {
            (each.topic, each.partition) for each in snapshot.troubled if each.leader is None
        }
        partitions: list[TopicPartition] = []
        for topic in snapshot.topics.values():
            for index in range(topic.partitions):
                if len(partitions) < self.PARTITIONS_MAX and (topic.name, index) not in offline:
                    partitions.append((topic.name, index))
        found = await list_offsets(self._client, dict.fromkeys(partitions, LATEST_TIMESTAMP))
        ends = {each: answer.offset for each, answer in found.items()}
        seconds = (now_ms - self._at_ms) / 1000
        rates: dict[str, float] = {}
        if self._ends and seconds * 1000 < self.FORGET_AFTER_MS:
            for each, end in ends.items():
                grown = max(end - self._ends.get(each, end), 0)
                rates[each[0]] = rates.get(each[0], 0.0) + grown / seconds
        self._at_ms, self._ends, self._rates = now_ms, ends, rates
