"""What fetches took out of each topic, counted when they are answered; so are throttled bytes."""

from __future__ import annotations

from collections.abc import Mapping

from ..partition.hosted_partitions import HostedPartitions
from .fetch import FetchParams, FetchResults


def count_fetches(hosted: HostedPartitions, params: FetchParams, results: FetchResults) -> None:
    """Count one fetch's answer.

    Each partition counts once; in Kafka twice if its fetch had to wait, for it is read twice.
    """
    find = hosted.topic_stats.find
    is_from_follower = params.is_from_follower
    for asked, data in results:
        stats = find(asked.topic_partition.topic)
        if stats is None:
            continue
        is_moving = False
        size = len(data.records)
        if is_from_follower:
            if size and hosted.quotas.leader.is_throttled(asked.topic_partition):
                hosted.quotas.leader.record(size)
            partition = hosted.online.get(asked.topic_partition)
            is_moving = partition is not None and params.replica_id in partition.adding_replicas
        stats.count_fetch(data.error, size, follower=is_from_follower, moving=is_moving)


def count_idle(hosted: HostedPartitions, idle: Mapping[str, int]) -> None:
    """Count the partitions that a fetch asked for and did not look at, since they were idle.

    Args:
        hosted: the partitions hosted here.
        idle: topic to how many of its partitions.
    """
    find = hosted.topic_stats.find
    for topic, count in idle.items():
        stats = find(topic)
        if stats is not None:
            stats.total_fetch_requests += count
