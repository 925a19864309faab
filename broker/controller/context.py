"""What the controller knows: live brokers, topics, and who leads which partition.

A copy of the metadata store's nodes that every decision is made on (Kafka's
ControllerContext). It is changed only after the store has accepted the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...replication.partition_state import PartitionState
from ..metadata_store.znodes import LeaderAndIsrNode
from .assignment import Assignment
from .live_broker import LiveBroker
from .topic_names import collision_key


class Leadership(NamedTuple):
    """A partition's leader and ISR, in the version that the store holds."""

    state: LeaderAndIsrNode
    version: int


class Topic:
    """One topic.

    Attributes:
        version: of the topic's node in the store.
        leaderships: by partition; a partition without one was never led.
        is_being_deleted: marked for deletion; invisible to clients.
        is_reassigning: some of its replicas are being added or removed.
    """

    __slots__ = (
        "assignment",
        "config",
        "is_being_deleted",
        "is_reassigning",
        "leaderships",
        "name",
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
        self.leaderships: dict[int, Leadership] = {}
        self.is_being_deleted = False
        self.is_reassigning = False

    def partition_state(self, partition: int, *, is_new: bool = False) -> PartitionState:
        """What a replica is told of a partition that has a leadership."""
        state, version = self.leaderships[partition]
        return PartitionState(
            self.name,
            self.topic_id,
            partition,
            state.controller_epoch,
            state.leader,
            state.leader_epoch,
            state.isr,
            version,
            self.assignment[partition],
            is_new,
            self.config,
        )


class ControllerContext:
    """The controller's view of the cluster.

    Attributes:
        epoch: the controller's own, that of its last election.
        live_brokers: by id.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.live_brokers: dict[int, LiveBroker] = {}
        self._topics: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}
        self._collisions: dict[str, str] = {}

    @property
    def live_broker_ids(self) -> list[int]:
        """Ascending."""
        return sorted(self.live_brokers)

    def topics(self) -> Iterable[Topic]:
        """All topics, those being deleted too."""
        return self._topics.values()

    def topic(self, name: str) -> Topic | None:
        """A topic that is not being deleted."""
        topic = self._topics.get(name)
        return None if topic is None or topic.is_being_deleted else topic

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
        """Forget a topic that the store holds no more."""
        del self._topics[topic.name]
        del self._names[topic.topic_id]
        key = collision_key(topic.name)
        if self._collisions.get(key) == topic.name:
            del self._collisions[key]
