"""A topic as nodes of the metadata store: the operations that make, change and remove it.

What fits one transaction is one. A topic of many partitions takes several, in such an
order that a crash between any two leaves what the next start can finish: a partition
without a state is led for the first time, a topic marked for deletion is deleted again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..metadata_store import znodes
from ..metadata_store.errors import NoNode
from ..metadata_store.store import Create, Delete, MetadataStore, Operation, SetData
from ..metadata_store.znodes import LeaderAndIsrNode, TopicNode
from .context import Leadership, Topic

DELETIONS_PER_TRANSACTION = 5_000
"""ZooKeeper refuses a request of more than a megabyte; a deletion takes some 100 bytes."""


def create_topic_operations(topic: Topic) -> list[Operation]:
    """Make a topic's own nodes; its partitions follow in the same transaction or later."""
    name = topic.name
    node = TopicNode(topic.topic_id, topic.assignment)
    return [
        Create(znodes.topic_config_path(name), znodes.encode_topic_config(topic.config)),
        Create(znodes.topic_path(name), znodes.encode_topic(node)),
        Create(znodes.partitions_path(name)),
    ]


def create_partition_operation(topic: str, partition: int) -> Operation:
    """Make the parent of a partition's state."""
    return Create(znodes.partition_path(topic, partition))


def create_leadership_operation(topic: str, partition: int, state: LeaderAndIsrNode) -> Operation:
    """Write a partition's state for the first time."""
    path = znodes.partition_state_path(topic, partition)
    return Create(path, znodes.encode_partition_state(state))


def set_assignment_operation(topic: Topic) -> Operation:
    """Write a topic's assignment anew, if nobody else did meanwhile."""
    node = TopicNode(topic.topic_id, topic.assignment)
    return SetData(znodes.topic_path(topic.name), znodes.encode_topic(node), topic.version)


def set_leadership_operation(
    topic: str, partition: int, state: LeaderAndIsrNode, version: int
) -> Operation:
    """Write a partition's state anew, if nobody else did meanwhile."""
    path = znodes.partition_state_path(topic, partition)
    return SetData(path, znodes.encode_partition_state(state), version)


async def remove_topic_nodes(store: MetadataStore, topic: str) -> None:
    """Remove what is there of a topic, the mark for deletion last."""
    operations: list[Operation] = []
    partitions_path = znodes.partitions_path(topic)
    for partition in await _children(store, partitions_path):
        partition_path = f"{partitions_path}/{partition}"
        operations += [
            Delete(f"{partition_path}/{child}") for child in await _children(store, partition_path)
        ]
        operations.append(Delete(partition_path))
    rest = [
        partitions_path,
        znodes.topic_path(topic),
        znodes.topic_config_path(topic),
        znodes.delete_topic_path(topic),
    ]
    found = await store.get_many(rest)
    operations += [Delete(path) for path, node in zip(rest, found, strict=True) if node]
    for start in range(0, len(operations), DELETIONS_PER_TRANSACTION):
        await store.multi(operations[start : start + DELETIONS_PER_TRANSACTION])


async def _children(store: MetadataStore, path: str) -> list[str]:
    try:
        return await store.children(path)
    except NoNode:
        return []


async def read_topics(store: MetadataStore) -> list[Topic]:
    """All topics of the store with their configurations and leaderships."""
    names = await store.children(znodes.TOPICS)
    marked = set(await store.children(znodes.DELETE_TOPICS))
    nodes = await store.get_many([znodes.topic_path(name) for name in names])
    configs = await store.get_many([znodes.topic_config_path(name) for name in names])
    topics = []
    for name, node, config in zip(names, nodes, configs, strict=True):
        if node is None:
            continue
        decoded = znodes.decode_topic(node.data)
        overrides = {} if config is None else znodes.decode_topic_config(config.data)
        topic = Topic(name, decoded.topic_id, dict(decoded.assignment), overrides, node.version)
        topic.is_being_deleted = name in marked
        topic.is_reassigning = bool(decoded.adding_replicas or decoded.removing_replicas)
        topics.append(topic)
    await _read_leaderships(store, topics)
    return topics


async def _read_leaderships(store: MetadataStore, topics: Sequence[Topic]) -> None:
    wanted = [(topic, partition) for topic in topics for partition in topic.assignment]
    states = await store.get_many(
        [znodes.partition_state_path(topic.name, partition) for topic, partition in wanted]
    )
    for (topic, partition), node in zip(wanted, states, strict=True):
        if node is not None:
            state = znodes.decode_partition_state(node.data)
            topic.leaderships[partition] = Leadership(state, node.version)
