"""The cluster as one metadata answer describes it: an immutable snapshot.

Readers take it once and see one moment. Nothing in it changes; a refresh puts another in its
place (article 002, section 3), so nothing needs a lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ...common.errors import ErrorCode
from ...common.sentinels import ZERO_UUID


class Node(NamedTuple):
    """A broker's address. Those of the bootstrap list, whose ids nobody knows yet, have
    negative ones."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        """HOST:PORT, an IPv6 address in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class PartitionInfo(NamedTuple):
    """Where one partition lives."""

    topic: str
    partition: int
    leader_id: int | None = None
    leader_epoch: int | None = None
    """None where the broker's answer is too old to have it reliably (before Metadata v9)."""
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    error_code: int = ErrorCode.NONE


class TopicInfo(NamedTuple):
    """A topic and its partitions; of one with an error only that is known."""

    name: str
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: Mapping[int, PartitionInfo] = MappingProxyType({})
    error_code: int = ErrorCode.NONE


class Cluster(NamedTuple):
    """All of it, at one version."""

    nodes: Mapping[int, Node] = MappingProxyType({})
    topics: Mapping[str, TopicInfo] = MappingProxyType({})
    controller_id: int | None = None
    cluster_id: str | None = None
    version: int = 0
    """Grows with every update of the `Metadata` that this is a snapshot of."""
    is_bootstrap: bool = False
    """Whether it is only the bootstrap list, and no broker has answered yet."""
    topic_names: Mapping[bytes, str] = MappingProxyType({})
    """The topics by their ids."""

    @classmethod
    def bootstrap(cls, addresses: Iterable[tuple[str, int]], version: int = 0) -> Cluster:
        """What a client knows at its start: addresses, as nodes -1, -2 and so on."""
        nodes = {
            -number: Node(-number, host, port)
            for number, (host, port) in enumerate(addresses, start=1)
        }
        return cls(MappingProxyType(nodes), version=version, is_bootstrap=True)

    @classmethod
    def of(
        cls,
        nodes: Mapping[int, Node],
        topics: Mapping[str, TopicInfo],
        *,
        controller_id: int | None,
        cluster_id: str | None,
        version: int,
    ) -> Cluster:
        """A snapshot of these; the mappings must not change afterwards."""
        names = {topic.topic_id: name for name, topic in topics.items() if any(topic.topic_id)}
        return cls(
            MappingProxyType(nodes),
            MappingProxyType(topics),
            controller_id,
            cluster_id,
            version,
            False,
            MappingProxyType(names),
        )

    @property
    def controller(self) -> Node | None:
        """The controller's node, or None while there is none."""
        return None if self.controller_id is None else self.nodes.get(self.controller_id)

    def topic(self, name: str) -> TopicInfo | None:
        """A topic by its name."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicInfo | None:
        """A topic by its id."""
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def partition(self, topic: str, index: int) -> PartitionInfo | None:
        """A partition, if the topic is known and has it."""
        info = self.topics.get(topic)
        return None if info is None else info.partitions.get(index)

    def leader_of(self, topic: str, index: int) -> Node | None:
        """The node of a partition's leader; None where there is none, or its node is unknown."""
        partition = self.partition(topic, index)
        if partition is None or partition.leader_id is None:
            return None
        return self.nodes.get(partition.leader_id)

    def topics_with_error(self, code: ErrorCode) -> frozenset[str]:
        """The names of the topics that were answered with this error."""
        return frozenset(name for name, topic in self.topics.items() if topic.error_code == code)

    def with_leaders(self, leaders: Iterable[PartitionInfo], nodes: Iterable[Node]) -> Cluster:
        """The same cluster, these partitions and nodes replaced or added."""
        topics = dict(self.topics)
        for partition in leaders:
            topic = topics[partition.topic]
            partitions = {**topic.partitions, partition.partition: partition}
            topics[partition.topic] = topic._replace(partitions=MappingProxyType(partitions))
        merged = {**self.nodes, **{node.id: node for node in nodes}}
        return self._replace(nodes=MappingProxyType(merged), topics=MappingProxyType(topics))


def parse_bootstrap(servers: str | Sequence[str]) -> list[tuple[str, int]]:
    """The addresses of a bootstrap list, "host:port,host:port" or one each.

    Raises:
        ValueError: an entry is no HOST:PORT, or there is none.
    """
    entries = servers.split(",") if isinstance(servers, str) else servers
    addresses = [_parse_address(entry.strip()) for entry in entries if entry.strip()]
    if not addresses:
        raise ValueError("the bootstrap list names no address: give HOST:PORT")
    return addresses


def _parse_address(entry: str) -> tuple[str, int]:
    host, colon, port = entry.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"bootstrap address {entry!r}: an IPv6 host needs brackets, [HOST]:PORT")
    if not colon or not host or not port.isascii() or not port.isdigit():
        raise ValueError(f"bootstrap address {entry!r} is not HOST:PORT")
    if not 0 < int(port) < 1 << 16:
        raise ValueError(f"bootstrap address {entry!r}: there is no port {port}")
    return host, int(port)
