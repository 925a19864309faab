"""How far this broker's replicas are behind the leaders that they follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .metric import Sample

if TYPE_CHECKING:
    from ..broker import Broker

_MANAGER = "kafka_server_replicafetchermanager_"
_CLIENT = ("Replica",)
"""Kafka's name for the fetchers of replicas, all together."""


def fetcher_samples(broker: Broker) -> Iterator[Sample]:
    """All fetchers together, and each partition they follow."""
    fetchers = broker.peers.fetchers
    yield _MANAGER + "maxlag", _CLIENT, fetchers.max_lag()
    yield _MANAGER + "failedpartitionscount", _CLIENT, fetchers.failed_partitions_count
    yield _MANAGER + "deadthreadcount", _CLIENT, fetchers.dead_threads_count
    for fetcher in list(fetchers):
        client = f"ReplicaFetcherThread-{fetcher.fetcher_id}-{fetcher.leader_id}"
        for topic_partition, lag in fetcher.lags().items():
            labels = (client, topic_partition.topic, str(topic_partition.partition))
            yield "kafka_server_fetcherlagmetrics_consumerlag", labels, lag
