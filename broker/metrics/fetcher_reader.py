"""How far this broker's replicas are behind what they follow: leaders, or a log that moves."""

from __future__ import annotations

from collections.abc import Iterator

from .metric import Sample
from .source import MetricsSource

_MANAGER = "kafka_server_replicafetchermanager_"
_CLIENT = ("Replica",)
"""Kafka's name for the fetchers of replicas, all together."""
_MOVES = "kafka_server_replicaalterlogdirsmanager_"
_MOVER = ("ReplicaAlterLogDirs",)


def fetcher_samples(source: MetricsSource) -> Iterator[Sample]:
    """All fetchers together, and each partition they follow."""
    fetchers = source.fetchers
    yield _MANAGER + "maxlag", _CLIENT, fetchers.max_lag()
    yield _MANAGER + "failedpartitionscount", _CLIENT, fetchers.failed_partitions_count
    yield _MANAGER + "deadthreadcount", _CLIENT, fetchers.dead_threads_count
    moves = source.context.replica_manager.future_replicas
    yield _MOVES + "maxlag", _MOVER, moves.max_lag
    yield _MOVES + "failedpartitionscount", _MOVER, moves.failed_count
    for fetcher in list(fetchers):
        client = f"ReplicaFetcherThread-{fetcher.fetcher_id}-{fetcher.leader_id}"
        for topic_partition, lag in fetcher.lags().items():
            labels = (client, topic_partition.topic, str(topic_partition.partition))
            yield "kafka_server_fetcherlagmetrics_consumerlag", labels, lag
