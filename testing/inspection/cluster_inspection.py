"""What a test sees of a cluster without a client: what each broker knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import broker_state, topic_admin
from .states import (
    DEAD,
    InspectedClientMetrics,
    InspectedGroup,
    InspectedProducer,
    InspectedSharePartition,
    InspectedTopic,
    InspectedTransaction,
)
from .waitable import Waitable

if TYPE_CHECKING:
    from ..running_broker import Broker
    from .records import ConsumerRecord


class ClusterInspection(ABC, Waitable):
    """Looking into a cluster whose brokers are processes of their own.

    All raise `ControlError` where no broker can tell, with a sentence that says why.
    """

    @abstractmethod
    def running(self) -> list[Broker]:
        """The brokers whose processes run and are not frozen."""

    @abstractmethod
    def controller(self) -> Broker:
        """The broker that is the controller."""

    @abstractmethod
    def leader_of(self, topic: str, partition: int = 0) -> Broker:
        """The broker that leads a partition."""

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: dict[str, str] | None = None,
    ) -> None:
        """Create a topic; returns when all brokers know who leads its partitions.

        Args:
            name: no topic has it.
            replication_factor: None: three, or as many as there are brokers.
            config: the topic's own settings, by Kafka's names.
        """
        running = self.running()
        factor = min(len(running), 3) if replication_factor is None else replication_factor
        self.controller().create_topic(name, partitions, factor, config)
        for broker in running:
            topic_admin.wait_until_led.on(broker.control())(name, partitions)

    def delete_topic(self, *names: str) -> None:
        """Delete topics; returns when they and their logs are gone."""
        self.controller().delete_topic(*names)
        self._wait_until_gone(names)

    def _wait_until_gone(self, names: Sequence[str]) -> None:
        for broker in self.running():
            topic_admin.wait_until_gone.on(broker.control())(list(names))

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of the topics, in order."""
        return self.controller().topics(internal=internal)

    def topic(self, name: str) -> InspectedTopic:
        """A topic and its partitions, as far as their leaders run as these see them."""
        known = self.controller().topic(name)
        led = {
            each.partition: each
            for broker in self.running()
            for each in broker.topic(name).partitions
            if each.is_leader
        }
        return known._replace(
            partitions=tuple(led.get(each.partition, each) for each in known.partitions)
        )

    def read(
        self,
        topic: str,
        partition: int | None = None,
        *,
        offset: int = 0,
        committed_only: bool = False,
    ) -> list[ConsumerRecord]:
        """The records of a topic that consumers could read now; see `BrokerInspection.read`."""
        numbers = [partition]
        if partition is None:
            numbers = [each.partition for each in self.controller().topic(topic).partitions]
        found: list[ConsumerRecord] = []
        for number in numbers:
            leader = self.leader_of(topic, number or 0)
            found += leader.read(topic, number, offset=offset, committed_only=committed_only)
        return found

    def groups(self) -> list[str]:
        """The ids of all groups, in order."""
        return sorted(name for broker in self.running() for name in broker.groups())

    def group(self, name: str) -> InspectedGroup:
        """A group as it is now; its state is "Dead" where there is no such group."""
        for broker in self.running():
            found = broker.group(name)
            if found.state != DEAD:
                return found._replace(ends={each: self._end(*each) for each in found.offsets})
        return InspectedGroup(name)

    def share_partitions(self, group: str) -> list[InspectedSharePartition]:
        """What a share group has of each partition; see `InspectedSharePartition`."""
        found: dict[tuple[str, int], InspectedSharePartition] = {}
        for broker in self.running():
            for each in broker.share_partitions(group):
                if each.is_loaded or each[:2] not in found:
                    found[each[:2]] = each
        return [
            each if each.is_loaded else each._replace(end=self._end(each.topic, each.partition))
            for _, each in sorted(found.items())
        ]

    def client_metrics(self) -> list[InspectedClientMetrics]:
        """What clients push, to whichever broker: each pushes to one of them."""
        return [each for broker in self.running() for each in broker.client_metrics()]

    def _end(self, topic: str, partition: int) -> int:
        """How far readers can go."""
        for broker in self.running():
            state = broker_state.partition.on(broker.control())(topic, partition)
            if state.is_leader:
                return state.high_watermark
        return 0

    def transactions(self) -> list[InspectedTransaction]:
        """All transactional ids, in order."""
        return sorted(each for broker in self.running() for each in broker.transactions())

    def transaction(self, transactional_id: str) -> InspectedTransaction | None:
        """A transactional id as it is now; None: no broker knows it."""
        found = [each for each in self.transactions() if each.transactional_id == transactional_id]
        return found[0] if found else None

    def producers(self, topic: str, partition: int = 0) -> list[InspectedProducer]:
        """The idempotent producers that the leader of a partition remembers."""
        return self.leader_of(topic, partition).producers(topic, partition)

    def reset(self) -> None:
        """Empty the cluster: topics, groups, transactions and settings of topics are gone."""
        names = self.topics(internal=True)
        topic_admin.delete_all_topics.on(self.controller().control())()
        self._wait_until_gone(names)
        for broker in self.running():
            broker.requests.clear()
