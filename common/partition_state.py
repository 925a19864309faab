"""Who leads a partition: as the metadata store holds it, and as the controller sends it.

The wire form is the controller channel's to translate (article 001).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from .named_tuple import NamedTuple
from .topic_partition import TopicPartition

LEADER_DURING_DELETE = -2
"""The leader that UpdateMetadata names for a partition that is being deleted."""


class LeaderAndIsr(NamedTuple):
    """A partition's leader and in-sync replicas, as its state node in the store holds them.

    Kafka's LeaderAndIsr and LeaderIsrAndControllerEpoch. The controller's elections make one
    from another; a leader proposes one to change its ISR (KIP-497).

    Attributes:
        controller_epoch: of the controller that wrote the state, or that made the leader who did.
        leader: broker id, or `NO_LEADER`.
        isr: broker ids.
        partition_epoch: the version of the node, and of a state to be written that of the node
            it replaces by compare-and-set.
    """

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0

    def new_leader(self, controller_epoch: int, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """The state to write in place of this one, in the next leader epoch."""
        return LeaderAndIsr(
            controller_epoch, leader, self.leader_epoch + 1, isr, self.partition_epoch
        )


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


class StoppedReplica(NamedTuple):
    """A partition to give up.

    Attributes:
        leader_epoch: the one the controller knows; negative where it does not matter.
        delete: whether the log goes too.
    """

    topic_partition: TopicPartition
    leader_epoch: int = -1
    delete: bool = False


def shared_replicas(broker_ids: Iterable[int]) -> tuple[int, ...]:
    """The broker ids in their order, the same object as for whoever asked for such before.

    A cluster has few different lists of replicas, and the controller, each broker's view of the
    metadata and each replica keep some of every partition: of 100,000 partitions they would be
    40 MB.
    """
    return _shared(tuple(broker_ids))


@lru_cache(maxsize=4096)
def _shared(broker_ids: tuple[int, ...]) -> tuple[int, ...]:
    return broker_ids
