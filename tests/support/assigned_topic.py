"""A topic whose replicas are where a test wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

from .broker_cluster import BrokerCluster

CREATE_VERSION = 5


def ask_for_topic(
    cluster: BrokerCluster,
    name: str,
    assignment: Sequence[Sequence[int]],
    configs: Mapping[str, str] | None = None,
) -> None:
    """Make a topic with its replicas on these brokers, partition by partition."""
    make = messages.CreateTopicsRequest
    topic = make.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            make.CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
            for index, ids in enumerate(assignment)
        ],
        configs=[
            make.CreatableTopicConfig(name=key, value=value)
            for key, value in (configs or {}).items()
        ],
    )
    request = make(topics=[topic], timeout_ms=60_000)
    (result,) = cluster.ask(cluster.running[0], request, CREATE_VERSION).topics
    assert result.error_code == ErrorCode.NONE, result.error_message
