"""What must hold in a cluster whatever happens, and what must hold once it has come to rest.

The first is looked at after every transaction of the metadata store, at the nodes that it
touched; the second compares what the store, the controller and every broker think.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....common.partition_state import LeaderAndIsr, PartitionState
from ....common.sentinels import NO_LEADER
from ....common.topic_partition import TopicPartition
from ....metadata_store import znodes
from ....metadata_store.embedded.node_table import NodeTable, Paths
from ....metadata_store.znodes import TopicNode
from .broker import SimulatedBroker

STATE_PARTS = 7
"""/brokers/topics/T/partitions/P/state has so many parts, the empty one at the front among them."""

TOPIC_PARTS = 4


class InvariantBroken(AssertionError):
    """What must always hold did not."""


class Held(NamedTuple):
    """A partition as the store holds it."""

    topic_partition: TopicPartition
    topic_id: bytes
    replicas: tuple[int, ...]
    state: LeaderAndIsr | None

    def __str__(self) -> str:
        return f"{self.topic_partition} on {self.replicas} with {self.state}"


class Invariants:
    """Watches over one run.

    Args:
        table: the store's nodes.
        allows_unclean: whether topics that do not say otherwise may be led uncleanly.

    Attributes:
        elected_uncleanly: the ids of topics for which somebody requested that.
        to_be_deleted: the ids of topics whose deletion was requested.
        requested_targets: by topic id and partition, the replica sets that were requested.
    """

    def __init__(self, table: NodeTable, *, allows_unclean: bool) -> None:
        self._table = table
        self._allows_unclean = allows_unclean
        self.elected_uncleanly: set[bytes] = set()
        self.to_be_deleted: set[bytes] = set()
        self.requested_targets: dict[tuple[bytes, int], list[frozenset[int]]] = {}
        self._elected: dict[int, tuple[int, int]] = {}
        self._leaders: dict[tuple[bytes, int, int], int] = {}
        self._states: dict[tuple[bytes, int], LeaderAndIsr] = {}
        self._topics: dict[str, TopicNode] = {}

    # -- at each step -------------------------------------------------------------------------

    def note_election(self, epoch: int, broker: SimulatedBroker) -> None:
        """A broker was elected: nobody else may be in the same epoch."""
        who = (broker.broker_id, broker.life)
        if self._elected.setdefault(epoch, who) != who:
            raise InvariantBroken(f"two controllers in epoch {epoch}")

    def note_leader(self, state: PartitionState, broker_id: int) -> None:
        """A broker leads: nobody else may in the same leader epoch, and the store agrees."""
        key = (state.topic_id, state.partition, state.leader_epoch)
        if self._leaders.setdefault(key, broker_id) != broker_id:
            raise InvariantBroken(f"two leaders of {state.topic_partition} in {key[2]}")

    def check_change(self, touched: Paths) -> None:
        """A transaction touched some nodes."""
        states = []
        for path in sorted(touched):
            parts = path.split("/")
            if not path.startswith(znodes.TOPICS):
                continue
            if len(parts) == TOPIC_PARTS:
                self._check_topic(parts[3])
            elif len(parts) == STATE_PARTS:
                states.append((parts[3], int(parts[5])))
        for name, partition in states:
            self._check_state(name, partition)

    def _check_topic(self, name: str) -> None:
        node = self._table.get(znodes.topic_path(name))
        former = self._topics.get(name)
        topic = None if node is None else znodes.decode_topic(node.data)
        if topic is None or (former is not None and former.topic_id != topic.topic_id):
            if former is not None and former.topic_id not in self.to_be_deleted:
                raise InvariantBroken(f"topic {name} is lost")
            self._topics.pop(name, None)
        if topic is not None:
            self._check_assignment(name, former, topic)
            self._topics[name] = topic

    def _check_assignment(self, name: str, former: TopicNode | None, topic: TopicNode) -> None:
        if former is not None and former.topic_id == topic.topic_id:
            lost = former.assignment.keys() - topic.assignment.keys()
            if lost:
                raise InvariantBroken(f"partitions {lost} of {name} are lost")
        for partition, replicas in topic.assignment.items():
            if not replicas or len(set(replicas)) != len(replicas):
                raise InvariantBroken(f"{name}-{partition} is assigned to {replicas}")
            adding = topic.adding_replicas.get(partition, ())
            removing = topic.removing_replicas.get(partition, ())
            if not {*adding, *removing} <= set(replicas):
                raise InvariantBroken(f"{name}-{partition} moves in {replicas}: {topic}")
            requested = self.requested_targets.setdefault((topic.topic_id, partition), [])
            target = frozenset(replicas).difference(removing)
            if not requested:
                requested.append(target)  # as it was made
            elif target not in requested:
                raise InvariantBroken(f"nobody requested {name}-{partition} on {sorted(target)}")

    def _check_state(self, name: str, partition: int) -> None:
        held = self._held(name, partition)
        if held is None or held.state is None:
            return
        state = held.state
        if not state.isr or len(set(state.isr)) != len(state.isr):
            raise InvariantBroken(f"that is no ISR: {held}")
        if not set(state.isr) <= set(held.replicas):
            raise InvariantBroken(f"one in sync is no replica: {held}")
        if state.leader not in (NO_LEADER, *state.isr):
            raise InvariantBroken(f"the leader is not in the ISR: {held}")
        former = self._states.get((held.topic_id, partition))
        if former is not None:
            self._check_step(held, former, state)
        self._states[held.topic_id, partition] = state
        if state.leader != NO_LEADER:
            key = (held.topic_id, partition, state.leader_epoch)
            if self._leaders.setdefault(key, state.leader) != state.leader:
                raise InvariantBroken(f"two leaders in one epoch: {held}")

    def _check_step(self, held: Held, former: LeaderAndIsr, state: LeaderAndIsr) -> None:
        where = f"{held} after {former}"
        if state.controller_epoch < former.controller_epoch:
            raise InvariantBroken(f"a replaced controller wrote: {where}")
        if state.leader_epoch < former.leader_epoch:
            raise InvariantBroken(f"the leader epoch went back: {where}")
        if state.leader_epoch == former.leader_epoch:
            if state.leader != former.leader:
                raise InvariantBroken(f"another leader in the same epoch: {where}")
            return  # the leader itself changed the ISR
        if state.leader not in (NO_LEADER, *former.isr) and not self._may_be_unclean(held):
            raise InvariantBroken(f"an unclean leader that nobody allowed: {where}")
        if not set(state.isr) <= {*former.isr, state.leader}:
            raise InvariantBroken(f"the controller took somebody into the ISR: {where}")

    def _may_be_unclean(self, held: Held) -> bool:
        if self._allows_unclean or held.topic_id in self.elected_uncleanly:
            return True
        node = self._table.get(znodes.topic_config_path(held.topic_partition.topic))
        overrides = {} if node is None else znodes.decode_config(node.data)
        return overrides.get("unclean.leader.election.enable") == "true"

    # -- what the store holds -----------------------------------------------------------------

    def _held(self, name: str, partition: int) -> Held | None:
        topic = self._topics.get(name)
        if topic is None or partition not in topic.assignment:
            return None
        node = self._table.get(znodes.partition_state_path(name, partition))
        state = None if node is None else znodes.decode_partition_state(node.data)
        replicas = topic.assignment[partition]
        return Held(TopicPartition(name, partition), topic.topic_id, replicas, state)

    def all_held(self) -> list[Held]:
        """Every partition of every topic that is not being deleted."""
        marked = self._table.children(znodes.DELETE_TOPICS) or []
        found = [
            self._held(name, partition)
            for name, topic in self._topics.items()
            if name not in marked
            for partition in topic.assignment
        ]
        return [held for held in found if held is not None]

    # -- at rest --------------------------------------------------------------------------------

    def check_rest(self, brokers: Sequence[SimulatedBroker]) -> None:
        """Nothing goes on any more, though some brokers may be dead and some disks broken."""
        alive = [broker for broker in brokers if broker.alive]
        controllers = [broker for broker in alive if broker.active is not None]
        if len(controllers) != 1:
            raise InvariantBroken(f"{len(controllers)} controllers at rest")
        for held in self.all_held():
            self._check_leadership(held, alive)
            for broker in alive:
                _check_view(broker, held)
                _check_replica(broker, held)
        self._check_strays(alive)

    def _check_leadership(self, held: Held, alive: Iterable[SimulatedBroker]) -> None:
        """Whoever can lead does, and who is gone is not in the ISR."""
        able = [
            broker.broker_id
            for broker in alive
            if broker.broker_id in held.replicas and held.topic_partition not in broker.failed
        ]
        state = held.state
        if state is None:
            if able:
                raise InvariantBroken(f"never led, though {able} could: {held}")
            return
        if state.leader == NO_LEADER:
            in_sync = [broker_id for broker_id in able if broker_id in state.isr]
            if in_sync:
                raise InvariantBroken(f"no leader, though {in_sync} could: {held}")
        elif state.leader not in able:
            raise InvariantBroken(f"the leader is gone: {held}")
        elif not set(state.isr) <= set(able):
            raise InvariantBroken(f"one in sync is gone: {held}")

    def _check_strays(self, alive: Iterable[SimulatedBroker]) -> None:
        known = {held.topic_partition: held for held in self.all_held()}
        for broker in alive:
            deleted = {
                each
                for each in broker.cache.get_all_partitions()
                if each not in known or known[each].state is None
            }
            if deleted:
                raise InvariantBroken(f"broker {broker.broker_id} still knows {deleted}")
            stray = [
                each
                for each in broker.partitions
                if each not in known or broker.broker_id not in known[each].replicas
            ]
            if stray:
                raise InvariantBroken(f"broker {broker.broker_id} still has {stray}")
            ids = {each.broker_id for each in alive}
            if set(broker.cache.snapshot.alive_brokers) != ids:
                raise InvariantBroken(
                    f"broker {broker.broker_id} knows {set(broker.cache.snapshot.alive_brokers)}"
                )

    def check_health(self, broker_count: int) -> None:
        """All brokers live, all disks work, all replicas caught up: nothing is left undone."""
        if self._table.children(znodes.DELETE_TOPICS):
            raise InvariantBroken("a deletion is not finished though all brokers are here")
        if len(self._table.children(znodes.BROKER_IDS) or []) != broker_count:
            raise InvariantBroken("a broker is not registered")
        for name, topic in self._topics.items():
            if topic.adding_replicas or topic.removing_replicas:
                raise InvariantBroken(f"{name} is still on its way: {topic}")
        for held in self.all_held():
            if held.state is None or held.state.leader == NO_LEADER:
                raise InvariantBroken(f"no leader: {held}")
            if set(held.state.isr) != set(held.replicas):
                raise InvariantBroken(f"not all in sync: {held}")


def _check_view(broker: SimulatedBroker, held: Held) -> None:
    """What a broker tells clients is what the store holds."""
    known = broker.cache.get_partition_info(*held.topic_partition)
    state = held.state
    if state is None:
        return
    if known is None or (
        known.topic_id,
        known.leader,
        known.leader_epoch,
        set(known.isr),
        known.replicas,
    ) != (held.topic_id, state.leader, state.leader_epoch, set(state.isr), held.replicas):
        raise InvariantBroken(f"broker {broker.broker_id} knows {known}: {held}")


def _check_replica(broker: SimulatedBroker, held: Held) -> None:
    """A broker leads and follows as the store says."""
    state = held.state
    if (
        state is None
        or broker.broker_id not in held.replicas
        or held.topic_partition in broker.failed
    ):
        return
    has = broker.partitions.get(held.topic_partition)
    if has is None or (has.topic_id, has.leader, has.leader_epoch) != (
        held.topic_id,
        state.leader,
        state.leader_epoch,
    ):
        raise InvariantBroken(f"replica {broker.broker_id} holds {has}: {held}")
