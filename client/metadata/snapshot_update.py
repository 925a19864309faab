"""From a metadata answer to the next snapshot of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ..error_kinds import STALE_METADATA_ERRORS
from .cluster import Cluster, Node, PartitionInfo, TopicInfo
from .leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from ...protocol import messages

    Topic = messages.MetadataResponse.MetadataResponseTopic
    Partition = messages.MetadataResponse.MetadataResponsePartition

NO_ID = -1


class SnapshotUpdate(NamedTuple):
    """The next snapshot, and what the answer means beside it.

    Attributes:
        cluster: with the version that it will have.
        is_progress: whether any partition's leader epoch is another than was known.
        is_stale: whether a topic or partition was answered with an error that a later
            answer may not have, so that another update is due.
    """

    cluster: Cluster
    is_progress: bool
    is_stale: bool


def next_snapshot(
    previous: Cluster,
    response: messages.MetadataResponse,
    epochs: LeaderEpochs,
    *,
    is_partial: bool,
    has_reliable_epochs: bool,
    retain: Callable[[str], bool],
) -> SnapshotUpdate:
    """Replace, or for a partial answer merge, the snapshot.

    Args:
        previous: the snapshot so far; it is not changed.
        response: the answer.
        epochs: the newest leader epochs seen; brought up to date.
        is_partial: whether the answer is about some of the topics only; then the others stay.
        has_reliable_epochs: whether its version is 9 or newer.
        retain: whether a topic is to be kept.
    """
    topics: dict[str, TopicInfo] = {}
    answered: set[str] = set()
    is_progress = is_stale = False
    for topic in response.topics:
        if topic.name is None:
            continue  # requested by an id that nobody knows
        answered.add(topic.name)
        if not retain(topic.name):
            continue
        info, progressed, stale = _topic(previous, topic, epochs, has_reliable_epochs)
        topics[topic.name] = info
        is_progress |= progressed
        is_stale |= stale
    if is_partial:
        for name, known in previous.topics.items():
            if name not in answered and retain(name):
                topics[name] = known
    nodes = {
        broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    controller_id = response.controller_id if response.controller_id in nodes else None
    cluster = Cluster.of(
        nodes,
        topics,
        controller_id=controller_id,
        cluster_id=response.cluster_id,
        version=previous.version + 1,
    )
    return SnapshotUpdate(cluster, is_progress, is_stale)


def _topic(
    previous: Cluster, topic: Topic, epochs: LeaderEpochs, has_reliable_epochs: bool
) -> tuple[TopicInfo, bool, bool]:
    name = topic.name or ""
    known = previous.topics.get(name)
    if topic.error_code:
        info = TopicInfo(name, topic.topic_id, topic.is_internal, error_code=topic.error_code)
        return info, False, topic.error_code in STALE_METADATA_ERRORS
    is_other_topic = epochs.is_other_topic(name, topic.topic_id)
    partitions: dict[int, PartitionInfo] = {}
    is_progress = is_stale = False
    for partition in topic.partitions:
        # One with an error counts too: its epoch may be new.
        accepted = epochs.accept(
            partition_info(name, partition),
            known.partitions.get(partition.partition_index) if known else None,
            is_reliable=has_reliable_epochs,
            is_other_topic=is_other_topic,
        )
        if accepted.partition is not None:
            partitions[partition.partition_index] = accepted.partition
        is_progress |= accepted.is_progress
        is_stale |= partition.error_code in STALE_METADATA_ERRORS
    info = TopicInfo(name, topic.topic_id, topic.is_internal, MappingProxyType(partitions))
    return info, is_progress, is_stale


def partition_info(topic: str, partition: Partition) -> PartitionInfo:
    """A partition as a metadata answer describes it."""
    return PartitionInfo(
        topic,
        partition.partition_index,
        None if partition.leader_id == NO_ID else partition.leader_id,
        None if partition.leader_epoch == NO_ID else partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        partition.error_code,
    )
