"""Snapshots of a broker's topics, and their removal in one go; in the broker's process.

A snapshot is copies of the topics' logs beside the log directory, with a list.

What holds is what the logs hold, and with Kafka's own topics among them that is groups' offsets
and transactions, too. A copy is made between two turns of the broker's loop, so it is of one
moment. Putting it back makes the topics anew under their ids, with leader epochs that nobody
has seen, so that whoever knew them goes on.

Deleting topics the usual way takes each through its states, with writes and requests of its
own: several milliseconds a topic. Here the broker's own parts get all of it at once: one
transaction in the metadata store, one StopReplica of all replicas, one new metadata snapshot.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from ...common.partition_state import LeaderAndIsr, StoppedReplica
from ...common.topic_partition import TopicPartition
from ...controller.channel.channel import StopReplica
from ...controller.context import Topic
from ...controller.topics.topic_nodes import (
    DELETIONS_PER_TRANSACTION,
    create_leadership_operation,
    create_partition_operation,
    create_topic_operations,
    remove_topic_nodes,
)
from ...metadata.metadata_cache import MetadataUpdate
from ...metadata_store import znodes
from ...metadata_store.errors import NoNode
from ...metadata_store.store import Delete, Operation
from ..control.framing import VerbError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...broker.broker import Broker
    from ...controller.active_controller import ActiveController

logger = logging.getLogger(__name__)

LIST_FILE = "snapshot.json"
REQUESTS_SECONDS_MAX = 30.0
"""How long what the controller has sent before may take to be carried out."""


class SnapshotPartition(NamedTuple):
    """A partition of a snapshot.

    Attributes:
        directory: the number of the log directory that it was in.
    """

    leader_epoch: int
    log_start_offset: int
    directory: int


class SnapshotTopic(NamedTuple):
    """A topic of a snapshot."""

    topic_id: bytes
    config: dict[str, str]
    partitions: dict[int, SnapshotPartition]


def take(broker: Broker) -> str:
    """Copy all topics; returns the name of the snapshot."""
    broker.replica_manager.flush()
    root = _root(broker)
    root.mkdir(parents=True, exist_ok=True)
    name = str(1 + max((int(each) for each in os.listdir(root) if each.isdigit()), default=0))
    folder = root / name
    folder.mkdir()
    topics: dict[str, Any] = {}
    snapshot = broker.metadata_cache.snapshot
    directories = broker.log_manager.log_dirs
    for topic_partition, hosted in broker.replica_manager.partitions.items():
        topic, number = topic_partition
        source = Path(hosted.log.directory)
        shutil.copytree(source, folder / source.name, copy_function=shutil.copyfile)
        known = topics.setdefault(
            topic,
            {
                "topic_id": hosted.topic_id.hex(),
                "config": dict(snapshot.topic_configs.get(topic, {})),
                "partitions": {},
            },
        )
        known["partitions"][number] = SnapshotPartition(
            hosted.leader_epoch, hosted.log_start_offset, directories.index(str(source.parent))
        )
    (folder / LIST_FILE).write_text(json.dumps(topics))
    logger.info("snapshot %s keeps %d topics", name, len(topics))
    return name


def find(broker: Broker, name: str) -> dict[str, SnapshotTopic]:
    """The topics of a snapshot. Raises VerbError: there is none of this name."""
    path = _root(broker) / name / LIST_FILE
    if not name.isdigit() or not path.exists():
        raise VerbError(f"this broker has no snapshot {name!r}: it keeps those that it has made")
    return {
        topic: SnapshotTopic(
            bytes.fromhex(known["topic_id"]),
            known["config"],
            {int(number): SnapshotPartition(*each) for number, each in known["partitions"].items()},
        )
        for topic, known in json.loads(path.read_text()).items()
    }


async def put_back(
    broker: Broker,
    controller: ActiveController,
    name: str,
    topics: dict[str, SnapshotTopic],
    epochs: dict[bytes, int],
) -> None:
    """Make the topics of a snapshot on a broker that has none; it acts as the controller.

    Args:
        epochs: by topic id, the latest leader epoch that anybody may know.
    """
    operations: list[Operation] = []
    made: list[tuple[Topic, Iterable[int]]] = []
    replicas = (broker.broker_id,)
    for topic_name, saved in topics.items():
        topic = Topic(
            topic_name,
            saved.topic_id,
            dict.fromkeys(sorted(saved.partitions), replicas),
            saved.config,
        )
        operations += create_topic_operations(topic)
        for number, partition in sorted(saved.partitions.items()):
            epoch = max(partition.leader_epoch, epochs.get(saved.topic_id, -1)) + 1
            state = LeaderAndIsr(controller.context.epoch, broker.broker_id, epoch, replicas)
            operations.append(create_partition_operation(topic_name, number))
            operations.append(create_leadership_operation(topic_name, number, state))
            _copy_back(broker, name, TopicPartition(topic_name, number), partition)
        made.append((topic, topic.assignment))
        controller.context.add_topic(topic)
    await controller.store.multi(operations)
    await controller.lead_new(made)
    logger.info("restored snapshot %s with %d topics", name, len(topics))


def advance_log_starts(broker: Broker, topics: dict[str, SnapshotTopic]) -> None:
    """Have logs begin where they began: a copy may begin earlier, within its first segment."""
    for topic, saved in topics.items():
        for number, partition in saved.partitions.items():
            hosted = broker.replica_manager.get_partition(TopicPartition(topic, number))
            if hosted is not None:
                hosted.log.advance_log_start_offset(partition.log_start_offset)


def _copy_back(
    broker: Broker, name: str, topic_partition: TopicPartition, saved: SnapshotPartition
) -> None:
    directory = Path(broker.log_manager.log_dirs[saved.directory])
    folder = f"{topic_partition.topic}-{topic_partition.partition}"
    source = _root(broker) / name / folder
    shutil.copytree(source, directory / folder, copy_function=shutil.copyfile)


def _root(broker: Broker) -> Path:
    """Where snapshots are saved: beside the first log directory, and gone with it."""
    return Path(broker.log_manager.log_dirs[0] + "-snapshots")


# -- removing all topics ---------------------------------------------------------------------------


async def remove_all_topics(broker: Broker, controller: ActiveController) -> None:
    """Take all topics from a broker, with all that is in them; it acts as the controller.

    Groups and transactions go with the topics that keep them. Whoever waits for something of
    theirs is answered that it is gone.

    Raises:
        VerbError: other brokers are there.
    """
    if len(controller.context.live_brokers) > 1:
        raise VerbError("other brokers are there: ask the cluster, not one of its brokers")
    await _finish_earlier_requests(broker, controller)
    topics = list(controller.context.topics())
    await _remove_nodes(controller, topics)
    for topic in topics:
        controller.context.remove_topic(topic)
    controller.context.replica_statuses.clear()
    manager = broker.replica_manager
    hosted = set(manager.partitions) | set(broker.log_manager.logs)
    manager.stop_replicas(
        controller.context.epoch, [StoppedReplica(each, delete=True) for each in sorted(hosted)]
    )
    live = list(controller.context.live_brokers.values())
    update = MetadataUpdate(broker.broker_id, controller.context.epoch, live, is_full=True)
    broker.metadata_cache.update_metadata(update)
    logger.info("reset: %d topics with %d partitions are gone", len(topics), len(hosted))


async def _finish_earlier_requests(broker: Broker, controller: ActiveController) -> None:
    """Wait until the broker has carried out all that its controller has sent it before."""
    done = trio.Event()
    (live,) = controller.context.live_brokers.values()
    request = StopReplica(broker.broker_id, controller.context.epoch, live.epoch, ())
    broker.channels.send(broker.broker_id, request, lambda _: done.set())
    with trio.move_on_after(REQUESTS_SECONDS_MAX):
        await done.wait()
        return
    raise TimeoutError("the broker does not answer its controller's requests")


async def _remove_nodes(controller: ActiveController, topics: list[Topic]) -> None:
    """Have the metadata store forget topics."""
    operations = [operation for topic in topics for operation in _deletions(topic)]
    try:
        for start in range(0, len(operations), DELETIONS_PER_TRANSACTION):
            await controller.store.multi(operations[start : start + DELETIONS_PER_TRANSACTION])
    except NoNode:  # one of them is not whole, such as one that is just being deleted
        for topic in topics:
            await remove_topic_nodes(controller.store, topic.name, controller.keep_pace)


def _deletions(topic: Topic) -> list[Operation]:
    operations: list[Operation] = []
    for partition in topic.assignment:
        if partition in topic.leaderships:
            operations.append(Delete(znodes.partition_state_path(topic.name, partition)))
        operations.append(Delete(znodes.partition_path(topic.name, partition)))
    operations += [
        Delete(znodes.partitions_path(topic.name)),
        Delete(znodes.topic_path(topic.name)),
        Delete(znodes.topic_config_path(topic.name)),
    ]
    if topic.is_being_deleted:
        operations.append(Delete(znodes.delete_topic_path(topic.name)))
    return operations
