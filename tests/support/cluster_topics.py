"""Topics of a cluster, made where a test wants them, and who coordinates what."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.common.errors import ErrorCode
from odradek.metadata_store.errors import NoNode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

from .assigned_topic import ask_for_topic
from .broker_cluster import BrokerCluster, View

GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators, by Kafka's numbers."""
FIND_VERSION = 4
SETTLE_SECONDS_MAX = 120.0


def coordinator(cluster: BrokerCluster, kind: int, key: str) -> int:
    """Which broker coordinates a group, or a producer's transactions."""
    request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])

    def found() -> int | None:
        (answer,) = cluster.ask(cluster.running[0], request, FIND_VERSION).coordinators
        return answer.node_id if answer.error_code == ErrorCode.NONE else None

    return wait_until(found, SETTLE_SECONDS_MAX, f"{key} has no coordinator")


def wait_all_in_sync(cluster: BrokerCluster, *names: str) -> None:
    """Wait until all brokers are there, and all replicas of all topics are in sync.

    Args:
        cluster: it runs.
        names: of topics that must be there.
    """

    def is_whole() -> bool:
        view = _tree_or_none(cluster)
        return (
            view is not None
            and view.brokers == frozenset(cluster.running)
            and view.topics.keys() >= set(names)
            and all(
                each.leader in view.brokers and each.isr == set(each.replicas)
                for topic in view.topics.values()
                for each in topic.values()
            )
        )

    wait_until(is_whole, SETTLE_SECONDS_MAX, f"replicas are not in sync: {cluster.folder}")


def create_topics(cluster: BrokerCluster, *names: str, partitions: int) -> None:
    """Topics with a replica on every broker, in sync."""
    for name in names:
        create_topic_on(cluster, name, *[tuple(cluster.running)] * partitions)


def create_topic_on(
    cluster: BrokerCluster,
    name: str,
    *assignment: Sequence[int],
    configs: dict[str, str] | None = None,
) -> None:
    """A topic with its replicas on these brokers, partition by partition, in sync.

    Every broker that runs knows of it, and of its own part in it: it is told that first.
    """
    ask_for_topic(cluster, name, assignment, configs)
    wait_all_in_sync(cluster, name)
    for broker_id in cluster.running:
        wait_until(
            lambda at=broker_id: name in cluster.view(at).topics,
            SETTLE_SECONDS_MAX,
            f"broker {broker_id} does not hear of {name}",
        )


def _tree_or_none(cluster: BrokerCluster) -> View | None:
    """What the metadata store holds; None while there is no controller."""
    try:
        return cluster.tree()
    except NoNode:
        return None
