"""What `odradek cluster` shows: brokers, and partitions that are in trouble.

It is worked out from one Metadata answer and, where there are some, from metrics; nothing here
asks anybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...common.sentinels import NO_LEADER
from ...protocol import messages
from .metrics import BrokerMetrics


class BrokerRow(NamedTuple):
    """One broker.

    Attributes:
        address: None where it is not alive, and only known as somebody's replica.
        leaders: partitions that it leads.
        replicas: partitions that it has a replica of.
        under_replicated: of those that it leads, how many have replicas that are not in sync.
        bytes_in, bytes_out: per second, of clients; None where no metrics tell.
        lag: records that its furthest replica is behind; None where no metrics tell.
    """

    broker_id: int
    rack: str | None
    address: str | None
    is_controller: bool
    leaders: int
    replicas: int
    under_replicated: int
    bytes_in: float | None
    bytes_out: float | None
    lag: int | None


class PartitionRow(NamedTuple):
    """One partition in trouble.

    Attributes:
        leader: None if it has none.
        missing: replicas that are not in sync.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    missing: tuple[int, ...]

    @property
    def state(self) -> str:
        """What is wrong with it."""
        return "offline" if self.leader is None else "under-replicated"


class ClusterView(NamedTuple):
    """The cluster at one moment."""

    cluster_id: str
    topics: int
    partitions: int
    brokers: tuple[BrokerRow, ...]
    troubled: tuple[PartitionRow, ...]


def make_view(
    answer: messages.MetadataResponse, metrics: Mapping[int, BrokerMetrics]
) -> ClusterView:
    """Put together what a broker and the metrics say.

    Args:
        answer: to a Metadata request for all topics.
        metrics: by broker id.
    """
    partitions = list(_partitions(answer))
    alive = {broker.node_id: broker for broker in answer.brokers}
    known = alive.keys() | {each for row in partitions for each in row.replicas}
    leads = Counter(row.leader for row in partitions)
    replicas = Counter(each for row in partitions for each in row.replicas)
    under_replicated = Counter(row.leader for row in partitions if row.missing)
    rows = []
    for broker_id in sorted(known):
        broker = alive.get(broker_id)
        measured = metrics.get(broker_id, BrokerMetrics())
        rows.append(
            BrokerRow(
                broker_id,
                None if broker is None else broker.rack,
                None if broker is None else _address(broker.host, broker.port),
                broker_id == answer.controller_id,
                leads[broker_id],
                replicas[broker_id],
                under_replicated[broker_id],
                measured.bytes_in,
                measured.bytes_out,
                measured.lag,
            )
        )
    troubled = [row for row in partitions if row.missing or row.leader is None]
    troubled.sort(key=lambda row: (row.topic, row.partition))
    topics = {row.topic for row in partitions}
    return ClusterView(
        answer.cluster_id or "", len(topics), len(partitions), tuple(rows), tuple(troubled)
    )


def _partitions(answer: messages.MetadataResponse) -> Iterable[PartitionRow]:
    for topic in answer.topics:
        for partition in topic.partitions:
            replicas = tuple(partition.replica_nodes)
            isr = tuple(partition.isr_nodes)
            leader = partition.leader_id
            yield PartitionRow(
                topic.name or "",
                partition.partition_index,
                None if leader == NO_LEADER else leader,
                replicas,
                isr,
                tuple(each for each in replicas if each not in isr),
            )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def as_json(view: ClusterView) -> Iterable[dict[str, Any]]:
    """The brokers, then the partitions in trouble, each as an object."""
    for broker in view.brokers:
        yield {"type": "broker", **broker._asdict()}
    for row in view.troubled:
        yield {"type": "partition", **row._asdict(), "state": row.state}
