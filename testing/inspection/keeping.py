"""Snapshots of a broker's topics: copies of their logs beside the log directory, with a list.

What holds is what the logs hold, and with Kafka's own topics among them that is groups' offsets
and transactions, too. A copy is made between two turns of the broker's loop, so it is of one
moment. Putting it back makes the topics anew under their ids, with leader epochs that nobody
has seen, so that whoever knew them goes on.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.topic_partition import TopicPartition
from ...controller.context import Topic
from ...controller.partitions.leadership_writer import PartitionOf
from ...controller.topics.topic_nodes import (
    create_leadership_operation,
    create_partition_operation,
    create_topic_operations,
)
from ...metadata_store.store import Operation
from ...metadata_store.znodes import LeaderAndIsrNode
from ..control.verbs import VerbError

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...controller.active_controller import Term

logger = logging.getLogger(__name__)

LIST_FILE = "snapshot.json"


class KeptPartition(NamedTuple):
    """A partition of a snapshot.

    Attributes:
        directory: the number of the log directory that it was in.
    """

    leader_epoch: int
    log_start_offset: int
    directory: int


class KeptTopic(NamedTuple):
    """A topic of a snapshot."""

    topic_id: bytes
    config: dict[str, str]
    partitions: dict[int, KeptPartition]


def keep(broker: Broker) -> str:
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
    for topic_partition, hosted in broker.replica_manager.hosted.online.items():
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
        known["partitions"][number] = KeptPartition(
            hosted.leader_epoch, hosted.log_start_offset, directories.index(str(source.parent))
        )
    (folder / LIST_FILE).write_text(json.dumps(topics))
    logger.info("snapshot %s keeps %d topics", name, len(topics))
    return name


def find(broker: Broker, name: str) -> dict[str, KeptTopic]:
    """The topics of a snapshot. Raises VerbError: there is none of this name."""
    path = _root(broker) / name / LIST_FILE
    if not name.isdigit() or not path.exists():
        raise VerbError(f"this broker has no snapshot {name!r}: it keeps those that it has made")
    return {
        topic: KeptTopic(
            bytes.fromhex(known["topic_id"]),
            known["config"],
            {int(number): KeptPartition(*each) for number, each in known["partitions"].items()},
        )
        for topic, known in json.loads(path.read_text()).items()
    }


async def put_back(
    broker: Broker, term: Term, name: str, topics: dict[str, KeptTopic], epochs: dict[bytes, int]
) -> None:
    """Make the topics of a snapshot on a broker that has none; it acts as the controller.

    Args:
        epochs: by topic id, the latest leader epoch that anybody may know.
    """
    operations: list[Operation] = []
    items: list[PartitionOf] = []
    replicas = (broker.broker_id,)
    for topic_name, kept in topics.items():
        topic = Topic(
            topic_name, kept.topic_id, dict.fromkeys(sorted(kept.partitions), replicas), kept.config
        )
        operations += create_topic_operations(topic)
        for number, partition in sorted(kept.partitions.items()):
            epoch = max(partition.leader_epoch, epochs.get(kept.topic_id, -1)) + 1
            state = LeaderAndIsrNode(term.context.epoch, broker.broker_id, epoch, replicas)
            operations.append(create_partition_operation(topic_name, number))
            operations.append(create_leadership_operation(topic_name, number, state))
            items.append(PartitionOf(topic, number))
            _copy_back(broker, name, TopicPartition(topic_name, number), partition)
        term.context.add_topic(topic)
    await term.store.multi(operations)
    await term.lead_new(items)
    logger.info("restored snapshot %s with %d topics", name, len(topics))


def move_starts(broker: Broker, topics: dict[str, KeptTopic]) -> None:
    """Have logs begin where they began: a copy may begin earlier, within its first segment."""
    for topic, kept in topics.items():
        for number, partition in kept.partitions.items():
            hosted = broker.replica_manager.get_partition(TopicPartition(topic, number))
            if hosted is not None:
                hosted.log.advance_log_start_offset(partition.log_start_offset)


def _copy_back(
    broker: Broker, name: str, topic_partition: TopicPartition, kept: KeptPartition
) -> None:
    directory = Path(broker.log_manager.log_dirs[kept.directory])
    folder = f"{topic_partition.topic}-{topic_partition.partition}"
    source = _root(broker) / name / folder
    shutil.copytree(source, directory / folder, copy_function=shutil.copyfile)


def _root(broker: Broker) -> Path:
    """Where snapshots are kept: beside the first log directory, and gone with it."""
    return Path(broker.log_manager.log_dirs[0] + "-snapshots")
