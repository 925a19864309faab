"""What a test sees of a cluster without a client: each broker is asked for what it knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .inspected import group_state, producer_states, topic_state, transaction_state
from .states import GroupState, PartitionState, ProducerState, TopicState, TransactionState

if TYPE_CHECKING:
    from ..running_broker import Broker
    from .conditions import Condition
    from .records import Record


class InspectedCluster(ABC):
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

    @abstractmethod
    def coordinator_of(self, group: str) -> Broker:
        """The broker that coordinates a group."""

    @abstractmethod
    def transaction_coordinator_of(self, transactional_id: str) -> Broker:
        """The broker that coordinates a transactional id."""

    # -- topics and records -------------------------------------------------------------------

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
            broker.control().call("topics.wait_for", name=name, partitions=partitions)

    def delete_topic(self, *names: str) -> None:
        """Delete topics; returns when they and their logs are gone."""
        self.controller().delete_topic(*names)
        self._wait_gone(names)

    def _wait_gone(self, names: Sequence[str]) -> None:
        for broker in self.running():
            broker.control().call("topics.wait_gone", names=list(names))

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of the topics, in order."""
        return self.controller().topics(internal=internal)

    def topic(self, name: str) -> TopicState:
        """A topic and its partitions, as far as their leaders run as these see them."""
        best = topic_state(self.controller().control().call("look.topic", name=name))
        seen: dict[int, PartitionState] = {}
        for broker in self.running():
            found = broker.control().call("look.topic", name=name)
            leads = {each["partition"] for each in found["partitions"] if each["is_leader"]}
            for partition in topic_state(found).partitions:
                if partition.partition in leads:
                    seen[partition.partition] = partition
        partitions = tuple(seen.get(each.partition, each) for each in best.partitions)
        return best._replace(partitions=partitions)

    def read(
        self,
        topic: str,
        partition: int | None = None,
        *,
        offset: int = 0,
        committed_only: bool = False,
    ) -> list[Record]:
        """The records of a topic that consumers could read now; see `Inspected.read`."""
        numbers = [partition]
        if partition is None:
            numbers = [each.partition for each in self.controller().topic(topic).partitions]
        found: list[Record] = []
        for number in numbers:
            leader = self.leader_of(topic, number or 0)
            found += leader.read(topic, number, offset=offset, committed_only=committed_only)
        return found

    # -- groups, transactions, producers ------------------------------------------------------

    def groups(self) -> list[str]:
        """The ids of all groups, in order."""
        return sorted(name for broker in self.running() for name in broker.groups())

    def group(self, name: str) -> GroupState:
        """A group as it is now; its state is "Dead" where there is no such group."""
        for broker in self.running():
            found = broker.control().call("look.group", name=name)
            if found is not None:
                return group_state(name, found, self._end)
        return GroupState(name)

    def _end(self, topic: str, partition: int) -> int:
        """How far readers can go."""
        for broker in self.running():
            known = broker.control().call("look.partition", topic=topic, partition=partition)
            if known["is_leader"]:
                end: int = known["high_watermark"]
                return end
        return 0

    def transactions(self) -> list[TransactionState]:
        """All transactional ids, in order."""
        found = [
            transaction_state(each)
            for broker in self.running()
            for each in broker.control().call("look.transactions")
        ]
        return sorted(found)

    def transaction(self, transactional_id: str) -> TransactionState | None:
        """A transactional id as it is now; None: no broker knows it."""
        for each in self.transactions():
            if each.transactional_id == transactional_id:
                return each
        return None

    def producers(self, topic: str, partition: int = 0) -> list[ProducerState]:
        """The idempotent producers that the leader of a partition remembers."""
        control = self.leader_of(topic, partition).control()
        return producer_states(control.call("look.producers", topic=topic, partition=partition))

    # -- waiting, as it was -----------------------------------------------------------------------

    def wait_until(
        self, *conditions: Condition | Callable[[Any], object], timeout: float = 30.0
    ) -> None:
        """Wait until all conditions hold of the cluster at once; see `Inspected.wait_until`."""
        from .waiting import wait_until

        wait_until(self, conditions, timeout)

    def reset(self) -> None:
        """Empty the cluster: topics, groups, transactions and settings of topics are gone."""
        names = self.topics(internal=True)
        self.controller().control().call("topics.reset_cluster", answer_within=60.0)
        self._wait_gone(names)
        for broker in self.running():
            broker.requests.clear()
