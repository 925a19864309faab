"""What the controller tells a broker of one partition: leader, epochs, ISR, replicas.

The domain form of LeaderAndIsr's partition state (article 001); the wire form is the
broker's to translate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .topic_partition import TopicPartition

LEADER_DURING_DELETE = -2
"""The leader that UpdateMetadata names for a partition that is being deleted."""


class PartitionState(NamedTuple):
    """One partition's leadership as decided by the controller.

    `partition_epoch` is the version of the partition's state in the metadata store (the
    zkVersion of ZooKeeper-mode Kafka), against which leaders compare-and-set the ISR.
    `config` holds the topic's overrides.
    """

    topic: str
    topic_id: bytes
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    is_new: bool = False
    config: Mapping[str, str] = {}
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    """On brokers that are alive, but not with the directory of the replica's log."""

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition spoken of."""
        return TopicPartition(self.topic, self.partition)
