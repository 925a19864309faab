"""Parts of a client with chance taken out, and metadata answers to feed to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from odradek.client.metadata.metadata import Metadata
from odradek.client.metadata.metadata_updater import MetadataUpdater
from odradek.client.metadata.tracked_topics import TrackedTopics
from odradek.client.network.backoff import ExponentialBackoff
from odradek.client.network.node_states import NodeStates
from odradek.client.settings import ClientSettings
from odradek.common.sentinels import ZERO_UUID
from odradek.protocol.messages import MetadataResponse

BACKOFF_MS = 100
BACKOFF_MAX_MS = 1_000
MAX_AGE_MS = 300_000
BOOTSTRAP = [("boot-1", 9092), ("boot-2", 9092)]


class NoChance(Random):
    """Backoffs without jitter, and searches that begin at the first node."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2

    def randrange(self, *arguments: int) -> int:  # type: ignore[override]  # fewer forms
        return 0


def make_metadata(*topics: str, idle_ms: int = -1, all_topics: bool = False) -> Metadata:
    """Metadata that keeps these topics, bootstrapped, at the time 0."""
    metadata = Metadata(
        ExponentialBackoff(BACKOFF_MS, BACKOFF_MAX_MS, NoChance()),
        MAX_AGE_MS,
        TrackedTopics(idle_ms, all_topics=all_topics),
    )
    metadata.bootstrap(BOOTSTRAP)
    for topic in topics:
        metadata.add_topic(topic, 0)
    return metadata


class Updater:
    """A `MetadataUpdater` with all that it looks at."""

    def __init__(self, *topics: str, **settings: int | str) -> None:
        self.settings = ClientSettings(**settings)  # type: ignore[arg-type]  # as the caller says
        self.metadata = make_metadata(*topics)
        self.states = NodeStates(self.settings, NoChance())
        self.in_flight: dict[int, int] = {}
        self.updater = MetadataUpdater(
            self.metadata,
            self.states,
            lambda node_id: self.in_flight.get(node_id, 0),
            self.settings,
            NoChance(),
        )

    def make_ready(self, *node_ids: int, now_ms: int = 0) -> None:
        """Connect to nodes."""
        for node_id in node_ids:
            self.states.connecting(node_id, now_ms)
            self.states.connected(node_id)
            self.states.ready(node_id)


def brokers(*node_ids: int) -> list[MetadataResponse.MetadataResponseBroker]:
    return [
        MetadataResponse.MetadataResponseBroker(node_id=n, host=f"broker-{n}", port=9092)
        for n in node_ids
    ]


def partition(
    index: int, leader: int, epoch: int = 0, *, error: int = 0, replicas: Sequence[int] = ()
) -> MetadataResponse.MetadataResponsePartition:
    return MetadataResponse.MetadataResponsePartition(
        partition_index=index,
        leader_id=leader,
        leader_epoch=epoch,
        error_code=error,
        replica_nodes=list(replicas or [leader]),
        isr_nodes=list(replicas or [leader]),
    )


def topic(
    name: str | None,
    *partitions: MetadataResponse.MetadataResponsePartition,
    topic_id: bytes = ZERO_UUID,
    error: int = 0,
) -> MetadataResponse.MetadataResponseTopic:
    return MetadataResponse.MetadataResponseTopic(
        name=name, topic_id=topic_id, error_code=error, partitions=list(partitions)
    )


def answer(
    *topics: MetadataResponse.MetadataResponseTopic,
    nodes: Sequence[int] = (1, 2),
    controller: int = 1,
    cluster_id: str = "cluster-1",
    error: int = 0,
) -> MetadataResponse:
    """A metadata answer."""
    return MetadataResponse(
        brokers=brokers(*nodes),
        topics=list(topics),
        controller_id=controller,
        cluster_id=cluster_id,
        error_code=error,
    )


def leaders(metadata: Metadata, topic_name: str) -> Mapping[int, int | None]:
    """The leaders of a topic's partitions, as the snapshot has them."""
    info = metadata.cluster.topic(topic_name)
    return {} if info is None else {p.partition: p.leader_id for p in info.partitions.values()}
