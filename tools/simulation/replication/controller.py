"""The metadata store and the controller, as small as replication needs them.

The store holds one state for each partition, replaced by compare-and-set, and who is
registered. The controller follows Kafka's rules (KafkaController, PartitionStateMachine and
ReplicaStateMachine of Kafka 3.9 in ZooKeeper mode): leaders come from the ISR, each of its
changes begins a leader epoch, and a broker that was gone, be it for a moment, leaves the ISR
unless it is the last one there. What it decides goes into a queue for each broker.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ....common.partition_state import LeaderAndIsr, PartitionState
from ....common.sentinels import NO_LEADER
from ....common.topic_partition import TopicPartition

TOPIC_ID = bytes(range(1, 17))


class Order(NamedTuple):
    """What the controller tells one broker: partitions' states, and who is alive."""

    controller_epoch: int
    broker_epoch: int
    """Of the registration that it is meant for; a broker refuses those for a former one."""
    states: tuple[PartitionState, ...]
    alive: frozenset[int]


class ReplicationStore:
    """What ZooKeeper would hold.

    Args:
        partitions: all there are.
        replicas: of each of them.
        on_change: called with each partition whose state was written.
    """

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        replicas: tuple[int, ...],
        on_change: Callable[[TopicPartition, LeaderAndIsr], None],
    ) -> None:
        self.replicas = replicas
        self.states = {each: LeaderAndIsr(1, NO_LEADER, 0, replicas) for each in partitions}
        self.registrations: dict[int, int] = {}
        """Broker epochs by broker, of those who have a session."""
        self._on_change = on_change
        self._last_broker_epoch = 0

    def register(self, broker_id: int) -> int:
        """A broker's session begins; returns its epoch."""
        self._last_broker_epoch += 1
        self.registrations[broker_id] = self._last_broker_epoch
        return self._last_broker_epoch

    def unregister(self, broker_id: int) -> None:
        """A broker's session has ended."""
        self.registrations.pop(broker_id, None)

    def compare_and_set(self, partition: TopicPartition, state: LeaderAndIsr) -> int | None:
        """Replace a state of `partition_epoch`; the new version, None where it has another."""
        version = state.partition_epoch + 1
        if self.states[partition].partition_epoch != state.partition_epoch:
            return None
        self.states[partition] = state._replace(partition_epoch=version)
        self._on_change(partition, self.states[partition])
        return version


class ReplicationController:
    """The controller, one after another.

    Args:
        store: where states are.
        min_insync_replicas: of the topic.
        allows_unclean: whether anybody may lead where nobody of the ISR is alive.

    Attributes:
        alive: the brokers it counts on, each with the epoch it knows.
        queues: orders by broker, the next first.
        late: orders of former controllers that are still on their way.
    """

    def __init__(
        self, store: ReplicationStore, min_insync_replicas: int, *, allows_unclean: bool
    ) -> None:
        self.epoch = 1
        self.alive: dict[int, int] = {}
        self.queues: dict[int, deque[Order]] = {}
        self.late: list[tuple[int, Order]] = []
        self._store = store
        self._allows_unclean = allows_unclean
        self._config = {"min.insync.replicas": str(min_insync_replicas)}

    # -- what it sees -------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether somebody has come or gone, and it has not looked since."""
        return self.alive != self._store.registrations

    def look(self) -> None:
        """See who has come and gone (Kafka's processBrokerChange)."""
        registered = dict(self._store.registrations)
        bounced = [
            each for each in sorted(self.alive) if registered.get(each, 0) > self.alive[each]
        ]
        new = sorted(registered.keys() - self.alive.keys())
        dead = sorted(self.alive.keys() - registered.keys())
        if new:
            self._take_up({each: registered[each] for each in new})
        if bounced:
            self._give_up(bounced)
            self._take_up({each: registered[each] for each in bounced})
        if dead:
            self._give_up(dead)

    def fail_over(self) -> None:
        """Another broker becomes the controller, and knows only what the store says."""
        self.epoch += 1
        self.late += [(each, order) for each, queue in self.queues.items() for order in queue]
        self.queues.clear()
        gone = sorted(set(self._store.replicas) - self._store.registrations.keys())
        self.alive = {}
        self._take_up(dict(sorted(self._store.registrations.items())))
        self._leave_isrs(gone)

    def _take_up(self, brokers: dict[int, int]) -> None:
        """Brokers have come: all metadata is sent to them (onBrokerStartup)."""
        self.alive.update(brokers)
        for broker_id in brokers:
            self.queues[broker_id] = deque()
        self._tell_all_who_is_alive(except_for=brokers)
        for broker_id in brokers:
            self._tell(broker_id, self._store.states)
        for partition, state in list(self._store.states.items()):
            if state.leader not in self.alive:
                self._elect(partition)

    def _give_up(self, brokers: list[int]) -> None:
        """Brokers are gone (onBrokerFailure)."""
        for broker_id in brokers:
            self.alive.pop(broker_id)
            self.queues.pop(broker_id)
        self._leave_isrs(brokers)
        self._tell_all_who_is_alive()

    def _leave_isrs(self, brokers: list[int]) -> None:
        for partition, state in list(self._store.states.items()):
            if state.leader in brokers or state.leader == NO_LEADER:
                self._elect(partition)
            for broker_id in brokers:
                self._leave_isr(partition, broker_id)

    # -- what it decides ----------------------------------------------------------------

    def _elect(self, partition: TopicPartition) -> None:
        """A leader from the ISR, or, if that is allowed, any (offlinePartitionLeaderElection)."""
        state = self._store.states[partition]
        in_sync = [each for each in self._store.replicas if each in state.isr]
        candidates = [each for each in in_sync if each in self.alive]
        if not candidates and self._allows_unclean:
            candidates = [each for each in self._store.replicas if each in self.alive][:1]
        if candidates:
            self._write(partition, candidates[0], tuple(candidates))

    def _leave_isr(self, partition: TopicPartition, broker_id: int) -> None:
        """Take one that is gone from the ISR; the last stays (removeReplicasFromIsr)."""
        state = self._store.states[partition]
        if broker_id not in state.isr:
            return
        leader = NO_LEADER if state.leader == broker_id else state.leader
        rest = tuple(each for each in state.isr if each != broker_id)
        self._write(partition, leader, rest or state.isr)

    def move_leader(self, partition: TopicPartition, rng: random.Random) -> bool:
        """Have another of the ISR lead, as in a preferred election; whether there is one."""
        state = self._store.states[partition]
        others = [each for each in state.isr if each in self.alive and each != state.leader]
        if state.leader == NO_LEADER or not others:
            return False
        self._write(partition, rng.choice(others), state.isr)
        return True

    def let_go(self, broker_id: int) -> None:
        """A broker wants to stop in good order (controlledShutdownPartitionLeaderElection)."""
        for partition, state in list(self._store.states.items()):
            others = tuple(e for e in state.isr if e in self.alive and e != broker_id)
            if state.leader == broker_id and others:
                self._write(partition, others[0], others)
            elif state.leader != broker_id:
                self._leave_isr(partition, broker_id)

    def _write(self, partition: TopicPartition, leader: int, isr: tuple[int, ...]) -> None:
        former = self._store.states[partition]
        self._store.compare_and_set(partition, former.new_leader(self.epoch, leader, isr))
        for broker_id in self.queues:
            self._tell(broker_id, [partition])

    # -- what it tells ------------------------------------------------------------------

    def _tell(self, broker_id: int, partitions: Iterable[TopicPartition]) -> None:
        states = tuple(self._state(each) for each in partitions)
        self._send(broker_id, states)

    def _tell_all_who_is_alive(self, except_for: Iterable[int] = ()) -> None:
        for broker_id in self.queues:
            if broker_id not in except_for:
                self._send(broker_id, ())

    def _send(self, broker_id: int, states: tuple[PartitionState, ...]) -> None:
        self.queues[broker_id].append(
            Order(self.epoch, self.alive[broker_id], states, frozenset(self.alive))
        )

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._store.states[partition]
        return PartitionState(
            topic=partition.topic,
            topic_id=TOPIC_ID,
            partition=partition.partition,
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            partition_epoch=state.partition_epoch,
            replicas=self._store.replicas,
            config=self._config,
        )
