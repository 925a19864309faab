"""The cluster as pages show it: one snapshot of its brokers and topics, read anew when it is old.

A snapshot of ten thousand partitions takes a broker and this process some tens of milliseconds, so
it serves every page of the next moments (`kept.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...client.error_kinds import error_of
from ...client.metadata.cluster import Node
from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from .kept import Kept

if TYPE_CHECKING:
    import trio

    from ...client.client import KafkaClient

FRESH_MS = 2_000
WARM_MS = 120_000


class TopicRow(NamedTuple):
    """A topic in a list.

    Attributes:
        replication: replicas of its first partition.
        offline: partitions without a leader.
        under_replicated: partitions with a replica that is not in sync.
    """

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: int
    replication: int
    offline: int
    under_replicated: int
    error_code: int


class Trouble(NamedTuple):
    """A partition without a leader, or with replicas out of sync."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def missing(self) -> tuple[int, ...]:
        """The replicas that are not in sync."""
        return tuple(each for each in self.replicas if each not in self.isr)


class BrokerRow(NamedTuple):
    """A broker, and what is placed on it; `node` is None for one that is not alive."""

    broker_id: int
    node: Node | None
    is_controller: bool
    leaders: int
    replicas: int
    behind: int
    """Replicas of it that are not in sync."""


class ClusterSnapshot(NamedTuple):
    """One answer of Metadata, counted.

    Attributes:
        topics: by name, in order.
    """

    cluster_id: str
    brokers: tuple[BrokerRow, ...]
    topics: Mapping[str, TopicRow]
    troubled: tuple[Trouble, ...]
    partitions: int
    offline: int


class ClusterReader:
    """Reads snapshots through a client, which is open.

    Args:
        client: of the cluster.
        nursery: where snapshots are read.
    """

    def __init__(self, client: KafkaClient, nursery: trio.Nursery) -> None:
        self._client = client
        self._kept = Kept(nursery, client.clock, self._read, FRESH_MS, WARM_MS)

    def forget(self) -> None:
        """Something was changed: the next page is to show it."""
        self._kept.forget()

    async def snapshot(self) -> ClusterSnapshot:
        """A snapshot that is fresh, or nearly so.

        Raises:
            ClientError: no broker could be reached.
        """
        return await self._kept.get()

    async def _read(self) -> ClusterSnapshot:
        request = messages.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        answer: messages.MetadataResponse = await self._client.send_to_any(request)
        nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
        return count(answer, nodes)

    async def topic(self, name: str) -> messages.MetadataResponse.MetadataResponseTopic:
        """A topic with its partitions as they are now.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION and so on.
            ClientError: no broker could be reached.
        """
        self._kept.use()
        make = messages.MetadataRequest.MetadataRequestTopic
        request = messages.MetadataRequest(
            topics=[make(name=name)], allow_auto_topic_creation=False
        )
        answer: messages.MetadataResponse = await self._client.send_to_any(request)
        for topic in answer.topics:
            if topic.error_code == ErrorCode.NONE and topic.name == name:
                topic.partitions.sort(key=lambda each: each.partition_index)
                return topic
            if topic.error_code:
                raise KafkaError(error_of(topic.error_code), f"topic {name}")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name}")


def count(answer: messages.MetadataResponse, nodes: Mapping[int, Node]) -> ClusterSnapshot:
    """Count what an answer says of all topics."""
    topics: list[TopicRow] = []
    troubled: list[Trouble] = []
    leaders: dict[int, int] = {}
    replicas: dict[int, int] = {}
    behind: dict[int, int] = {}
    for topic in answer.topics:
        offline = under_replicated = 0
        for each in topic.partitions:
            leader = each.leader_id
            leaders[leader] = leaders.get(leader, 0) + 1
            for broker in each.replica_nodes:
                replicas[broker] = replicas.get(broker, 0) + 1
            is_behind = len(each.isr_nodes) < len(each.replica_nodes)
            if not is_behind and leader >= 0:
                continue
            offline += leader < 0
            under_replicated += is_behind
            trouble = Trouble(
                topic.name or "",
                each.partition_index,
                leader if leader >= 0 else None,
                tuple(each.replica_nodes),
                tuple(each.isr_nodes),
            )
            troubled.append(trouble)
            for broker in trouble.missing:
                behind[broker] = behind.get(broker, 0) + 1
        topics.append(
            TopicRow(
                topic.name or "",
                topic.topic_id,
                topic.is_internal,
                len(topic.partitions),
                len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
                offline,
                under_replicated,
                topic.error_code,
            )
        )
    topics.sort()
    troubled.sort(key=lambda each: (each.leader is not None, each.topic, each.partition))
    return ClusterSnapshot(
        answer.cluster_id or "",
        tuple(
            BrokerRow(
                broker,
                nodes.get(broker),
                broker == answer.controller_id,
                leaders.get(broker, 0),
                replicas.get(broker, 0),
                behind.get(broker, 0),
            )
            for broker in sorted(nodes.keys() | replicas.keys())
        ),
        {topic.name: topic for topic in topics},
        tuple(troubled),
        sum(topic.partitions for topic in topics),
        sum(topic.offline for topic in topics),
    )


def search(names: Iterable[TopicRow], text: str, *, internal: bool) -> list[TopicRow]:
    """The topics whose names have a text in them, in any case."""
    needle = text.strip().lower()
    return [
        topic
        for topic in names
        if (internal or not topic.is_internal) and needle in topic.name.lower()
    ]
