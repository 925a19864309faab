"""A topic as nodes of the metadata store: the operations that make, change and remove it.

What fits one transaction is one. A topic of many partitions takes several, in such an
order that a crash between any two leaves what the next start can finish: a partition
without a state is led for the first time, a topic marked for deletion is deleted again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...common.partition_state import LeaderAndIsr
from ...metadata_store import znodes
from ...metadata_store.errors import BadVersion, NoNode
from ...metadata_store.store import Create, Delete, MetadataStore, Operation, SetData, StoredNode
from ...metadata_store.znodes import CorruptNode, TopicNode
from ...runtime.long_work import KeepPace
from ...runtime.steps import in_batches
from ..context import Reassignment, Topic
from ..fenced_store import FencedStore

logger = logging.getLogger(__name__)

DELETIONS_PER_TRANSACTION = 200
"""The embedded store does a transaction in one piece; a deletion takes it some 15 us."""


def create_topic_operations(topic: Topic) -> list[Operation]:
    """Make a topic's own nodes; its partitions follow in the same transaction or later."""
    name = topic.name
    node = TopicNode(topic.topic_id, topic.assignment)
    return [
        Create(znodes.topic_config_path(name), znodes.encode_config(topic.config)),
        Create(znodes.topic_path(name), znodes.encode_topic(node)),
        Create(znodes.partitions_path(name)),
    ]


def create_partition_operation(topic: str, partition: int) -> Operation:
    """Make the parent of a partition's state."""
    return Create(znodes.partition_path(topic, partition))


def create_leadership_operation(topic: str, partition: int, state: LeaderAndIsr) -> Operation:
    """Write a partition's state for the first time."""
    path = znodes.partition_state_path(topic, partition)
    return Create(path, znodes.encode_partition_state(state))


async def write_assignment(fenced: FencedStore, topic: Topic) -> None:
    """Write a topic's assignment anew, as the context now has it.

    Raises:
        ControllerMoved: another broker was elected.
        MetadataStoreError: it is not written. Where somebody else wrote it, which no
            controller can have been, everything has to be read again.
    """
    try:
        await fenced.multi([_set_assignment_operation(topic)])
    except (BadVersion, NoNode):
        fenced.is_unsure = True
        raise
    topic.version += 1


def _set_assignment_operation(topic: Topic) -> Operation:
    moving = topic.reassignments
    node = TopicNode(
        topic.topic_id,
        topic.assignment,
        {partition: each.adding for partition, each in moving.items() if each.adding},
        {partition: each.removing for partition, each in moving.items() if each.removing},
    )
    return SetData(znodes.topic_path(topic.name), znodes.encode_topic(node), topic.version)


def set_leadership_operation(topic: str, partition: int, state: LeaderAndIsr) -> Operation:
    """Write a partition's state anew, if nobody else did meanwhile."""
    path = znodes.partition_state_path(topic, partition)
    return SetData(path, znodes.encode_partition_state(state), state.partition_epoch)


async def remove_topic_nodes(fenced: FencedStore, topic: str, keep_pace: KeepPace) -> None:
    """Remove what is there of a topic, the mark for deletion last.

    Raises:
        ControllerMoved: another broker was elected, and may have made the topic anew.
    """
    store = fenced.store
    operations: list[Operation] = []
    partitions_path = znodes.partitions_path(topic)
    for partition in await _children(store, partitions_path):
        await keep_pace()
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
    for step in in_batches(operations, DELETIONS_PER_TRANSACTION):
        await keep_pace()
        await fenced.multi(step)


async def _children(store: MetadataStore, path: str) -> list[str]:
    try:
        return await store.children(path)
    except NoNode:
        return []


async def read_topics(store: MetadataStore, keep_pace: KeepPace) -> list[Topic]:
    """All topics of the store with their configurations and leaderships."""
    names = await store.children(znodes.TOPICS)
    marked = set(await store.children(znodes.DELETE_TOPICS))
    topics = await _read(store, names, keep_pace)
    for topic in topics:
        topic.is_being_deleted = topic.name in marked
    return topics


async def read_topic(store: MetadataStore, name: str, keep_pace: KeepPace) -> Topic | None:
    """One topic of the store, or None where there is none."""
    topics = await _read(store, [name], keep_pace)
    return topics[0] if topics else None


async def _read(store: MetadataStore, names: Sequence[str], keep_pace: KeepPace) -> list[Topic]:
    nodes = await store.get_many([znodes.topic_path(name) for name in names])
    configs = await store.get_many([znodes.topic_config_path(name) for name in names])
    topics = []
    for name, node, config in zip(names, nodes, configs, strict=True):
        await keep_pace()
        if node is None:
            continue
        try:
            decoded = znodes.decode_topic(node.data)
            overrides = {} if config is None else znodes.decode_config(config.data)
        except CorruptNode as error:
            logger.error("topic %r is left alone: its node is corrupt: %s", name, error)
            continue
        topic = Topic(name, decoded.topic_id, dict(decoded.assignment), overrides, node.version)
        for partition in decoded.adding_replicas.keys() | decoded.removing_replicas.keys():
            topic.reassignments[partition] = Reassignment(
                decoded.adding_replicas.get(partition, ()),
                decoded.removing_replicas.get(partition, ()),
            )
        topics.append(topic)
    await _read_leaderships(store, topics, keep_pace)
    return topics


async def _read_leaderships(
    store: MetadataStore, topics: Sequence[Topic], keep_pace: KeepPace
) -> None:
    partitions = [(topic, partition) for topic in topics for partition in topic.assignment]
    await keep_pace()
    paths = [znodes.partition_state_path(topic.name, partition) for topic, partition in partitions]
    states = await store.get_many(paths)
    for (topic, partition), node in zip(partitions, states, strict=True):
        await keep_pace()
        leadership = decode_leadership(topic.name, partition, node)
        if leadership is not None:
            topic.leaderships[partition] = leadership


def decode_leadership(topic: str, partition: int, node: StoredNode | None) -> LeaderAndIsr | None:
    """What a partition's state node says; None where there is none, or nothing to be read."""
    if node is None:
        return None
    try:
        return znodes.decode_partition_state(node.data, node.version)
    except CorruptNode as error:
        logger.error("%s-%d has no leader: its node is corrupt: %s", topic, partition, error)
        return None


async def read_topic_config(store: MetadataStore, topic: str) -> dict[str, str]:
    """The overrides of a topic, none where nothing is written of it. Raises CorruptNode."""
    (node,) = await store.get_many([znodes.topic_config_path(topic)])
    return {} if node is None else znodes.decode_config(node.data)
