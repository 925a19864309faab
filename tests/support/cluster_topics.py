"""Topics of a cluster, made where a test wants them, and who coordinates what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

from .broker_cluster import SETTLE_SECONDS_MAX, BrokerCluster

GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators, by Kafka's numbers."""
FIND_VERSION = 4
CREATE_VERSION = 7


def coordinator(cluster: BrokerCluster, kind: int, key: str) -> int:
    """Which broker coordinates a group, or a producer's transactions."""
    request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])

    def found() -> int | None:
        (answer,) = cluster.ask(cluster.running[0], request, FIND_VERSION).coordinators
        return answer.node_id if answer.error_code == ErrorCode.NONE else None

    return wait_until(found, SETTLE_SECONDS_MAX, f"{key} has no coordinator")


def create(
    cluster: BrokerCluster,
    broker_id: int,
    name: str,
    *replicas: Sequence[int],
    configs: Mapping[str, str] | None = None,
    timeout_ms: int = 60_000,
) -> int:
    """Have a broker make a topic; returns the error code.

    Args:
        replicas: partition by partition; none: 3 partitions of 3.
    """
    make = messages.CreateTopicsRequest
    topic = make.CreatableTopic(
        name=name,
        num_partitions=-1 if replicas else 3,
        replication_factor=-1 if replicas else 3,
        assignments=[
            make.CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
            for index, ids in enumerate(replicas)
        ],
        configs=[
            make.CreatableTopicConfig(name=key, value=value)
            for key, value in (configs or {}).items()
        ],
    )
    request = make(topics=[topic], timeout_ms=timeout_ms)
    (result,) = cluster.ask(broker_id, request, CREATE_VERSION).topics
    return int(result.error_code)


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
    made = create(cluster, cluster.running[0], name, *assignment, configs=configs)
    assert made == ErrorCode.NONE
    cluster.wait_in_sync(name)
    for broker_id in cluster.running:
        wait_until(
            partial(_knows, cluster, broker_id, name),
            SETTLE_SECONDS_MAX,
            f"broker {broker_id} does not hear of {name}",
        )


def _knows(cluster: BrokerCluster, broker_id: int, topic: str) -> bool:
    return topic in cluster.view(broker_id).topics
