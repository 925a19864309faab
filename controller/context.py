"""What the controller knows: brokers, topics, leaders, and the states of all of them.

A copy of the metadata store's nodes that every decision is made on (Kafka's
ControllerContext). It is changed only after the store has accepted the change.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from ..common.live_broker import LiveBroker
from ..common.named_tuple import NamedTuple
from ..common.partition_state import LEADER_DURING_DELETE, LeaderAndIsr, PartitionState
from ..common.topic_partition import TopicPartition
from .partitions.states import PartitionStatus, ReplicaStatus
from .topics.assignment import Assignment, Racks
from .topics.topic_names import collision_key


class Reassignment(NamedTuple):
    """A partition on its way to other brokers (KIP-455).

    While it lasts, the assignment holds the replicas to come and those to go.
    """

    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionAndReplica(NamedTuple):
    """One replica: a partition on a broker."""

    topic: str
    partition: int
    broker_id: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition it is of."""
        return TopicPartition(self.topic, self.partition)


class Topic:
    """One topic.

    Attributes:
        version: of the topic's node in the store.
        leaderships: by partition; a partition without one was never led.
        reassignments: by partition, of those on their way to other brokers.
        statuses: by partition.
        is_being_deleted: marked for deletion; invisible to clients.
        deletion_waits: its deletion waits for brokers that are not there.
    """

    __slots__ = (
        "assignment",
        "config",
        "deletion_waits",
        "is_being_deleted",
        "leaderships",
        "name",
        "reassignments",
        "statuses",
        "topic_id",
        "version",
    )

    def __init__(
        self,
        name: str,
        topic_id: bytes,
        assignment: Assignment,
        config: Mapping[str, str],
        version: int = 0,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.assignment = assignment
        self.config = config
        self.version = version
        self.leaderships: dict[int, LeaderAndIsr] = {}
        self.reassignments: dict[int, Reassignment] = {}
        self.statuses: dict[int, PartitionStatus] = {}
        self.is_being_deleted = False
        self.deletion_waits = False

    @property
    def is_reassigning(self) -> bool:
        """Whether any partition is on its way to other brokers."""
        return bool(self.reassignments)

    def status(self, partition: int) -> PartitionStatus:
        """How a partition stands."""
        return self.statuses.get(partition, PartitionStatus.NON_EXISTENT)

    def target_replicas(self, partition: int) -> tuple[int, ...]:
        """The replicas a partition will have once its reassignment is done."""
        reassignment = self.reassignments.get(partition)
        replicas = self.assignment[partition]
        if reassignment is None:
            return replicas
        return tuple(replica for replica in replicas if replica not in reassignment.removing)

    def replicas(self) -> Iterator[PartitionAndReplica]:
        """Every replica of every partition."""
        for partition, broker_ids in self.assignment.items():
            for broker_id in broker_ids:
                yield PartitionAndReplica(self.name, partition, broker_id)

    def partition_state(
        self, partition: int, *, is_new: bool = False, offline: tuple[int, ...] = ()
    ) -> PartitionState:
        """What requests to brokers say of a partition that has a leadership."""
        state = self.leaderships[partition]
        reassignment = self.reassignments.get(partition, NO_REASSIGNMENT)
        return PartitionState(
            self.name,
            self.topic_id,
            partition,
            state.controller_epoch,
            state.leader,
            state.leader_epoch,
            state.isr,
            state.partition_epoch,
            self.assignment[partition],
            is_new,
            self.config,
            reassignment.adding,
            reassignment.removing,
            offline,
        )

    def deleted_state(self, partition: int, controller_epoch: int) -> PartitionState:
        """What requests to brokers say of a partition that is being deleted."""
        leadership = self.leaderships.get(partition)
        return PartitionState(
            self.name,
            self.topic_id,
            partition,
            controller_epoch,
            LEADER_DURING_DELETE,
            LEADER_DURING_DELETE,
            () if leadership is None else leadership.isr,
            -1 if leadership is None else leadership.partition_epoch,
            self.assignment[partition],
        )


NO_REASSIGNMENT = Reassignment((), ())


class ControllerContext:
    """The controller's view of the cluster.

    Attributes:
        epoch: the controller's own, that of its last election.
        epoch_version: the version of the node that holds it, which fences every write.
        live_brokers: the registered ones by id, those shutting down among them.
        shutting_down: ids of live brokers in controlled shutdown.
        offline_directories: by broker, the partitions whose log directory failed there.
        replica_statuses: how each replica stands.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.epoch_version = 0
        self.live_brokers: dict[int, LiveBroker] = {}
        self.shutting_down: set[int] = set()
        self.offline_directories: dict[int, set[TopicPartition]] = {}
        self.replica_statuses: dict[PartitionAndReplica, ReplicaStatus] = {}
        self._topics: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}
        self._collisions: dict[str, str] = {}

    # -- brokers ----------------------------------------------------------------------

    @property
    def live_broker_ids(self) -> list[int]:
        """The brokers that may be given partitions, ascending."""
        return sorted(self.live_brokers.keys() - self.shutting_down)

    @property
    def live_racks(self) -> Racks:
        """The same brokers, with the rack of each."""
        return {broker_id: self.live_brokers[broker_id].rack for broker_id in self.live_broker_ids}

    def is_online(self, replica: PartitionAndReplica) -> bool:
        """Whether a replica's broker and log directory are there; one shutting down is."""
        broker_id = replica.broker_id
        if broker_id not in self.live_brokers:
            return False
        failed = self.offline_directories.get(broker_id)
        return failed is None or replica.topic_partition not in failed

    def electable(self, topic: Topic, partition: int) -> Container[int]:
        """The brokers that could lead a partition: alive, and staying."""
        return [
            broker_id
            for broker_id in topic.assignment[partition]
            if broker_id not in self.shutting_down
            and self.is_online(PartitionAndReplica(topic.name, partition, broker_id))
        ]

    def offline_replicas(self, topic: Topic, partition: int) -> tuple[int, ...]:
        """The brokers of a partition whose replica is not there."""
        return tuple(
            broker_id
            for broker_id in topic.assignment[partition]
            if not self.is_online(PartitionAndReplica(topic.name, partition, broker_id))
        )

    def replicas_on(self, broker_ids: Container[int]) -> Iterator[PartitionAndReplica]:
        """All replicas that some brokers hold."""
        for topic in self._topics.values():
            for replica in topic.replicas():
                if replica.broker_id in broker_ids:
                    yield replica

    def status(self, replica: PartitionAndReplica) -> ReplicaStatus:
        """How a replica stands."""
        return self.replica_statuses.get(replica, ReplicaStatus.NON_EXISTENT)

    # -- topics -----------------------------------------------------------------------

    def topics(self) -> Iterable[Topic]:
        """All topics, those being deleted too."""
        return self._topics.values()

    def topic(self, name: str) -> Topic | None:
        """A topic that is not being deleted."""
        topic = self._topics.get(name)
        return None if topic is None or topic.is_being_deleted else topic

    def any_topic(self, name: str) -> Topic | None:
        """A topic, be it one that is being deleted."""
        return self._topics.get(name)

    def has_name(self, name: str) -> bool:
        """Whether a topic has the name, be it one whose deletion is not done."""
        return name in self._topics

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """The topic of an id, if it is not being deleted."""
        name = self._names.get(topic_id)
        return None if name is None else self.topic(name)

    def colliding_topic(self, name: str) -> str | None:
        """Another topic whose name differs only in '.' and '_'."""
        other = self._collisions.get(collision_key(name))
        return None if other == name else other

    def add_topic(self, topic: Topic) -> None:
        """Take up a topic that the store holds."""
        self._topics[topic.name] = topic
        self._names[topic.topic_id] = topic.name
        self._collisions.setdefault(collision_key(topic.name), topic.name)

    def remove_topic(self, topic: Topic) -> None:
        """Forget a topic that the store does not hold any more, whose replicas are not there."""
        del self._topics[topic.name]
        if self._names.get(topic.topic_id) == topic.name:
            del self._names[topic.topic_id]
        key = collision_key(topic.name)
        if self._collisions.get(key) == topic.name:
            del self._collisions[key]
        for failed in self.offline_directories.values():
            failed.difference_update([each for each in failed if each.topic == topic.name])
