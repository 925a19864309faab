"""What the metadata store holds, and whether brokers come to think the same.

The nodes that a transaction touches are looked at as it is done; once nothing happens any more,
what the store, the controller and every broker think is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ....common.partition_state import LeaderAndIsr
from ....common.sentinels import NO_LEADER
from ....common.topic_partition import TopicPartition
from ....metadata.features import DEFAULT_LEVELS
from ....metadata_store import znodes
from ....metadata_store.embedded.node_table import NodeTable, Paths
from ....metadata_store.znodes import TopicNode
from ..node import Node
from .invariants import InvariantBroken

STATE_PARTS = 7
"""/brokers/topics/T/partitions/P/state has so many parts, the empty one at the front among them."""
TOPIC_PARTS = 4
UNCLEAN = "unclean.leader.election.enable"


class Held(NamedTuple):
    """A partition as the store holds it.

    Attributes:
        removing: those of its replicas that are to go.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    replicas: tuple[int, ...]
    removing: tuple[int, ...]
    state: LeaderAndIsr | None

    def __str__(self) -> str:
        return f"{self.topic_partition} on {self.replicas} with {self.state}"


class StoreChecker:
    """Watches over the store of one run.

    Args:
        allows_unclean: whether topics that do not say otherwise may be led uncleanly.
        on_state: called with each partition whose state was written.
        on_deletion: called with the id of each topic whose deletion begins.

    Attributes:
        table: the store's nodes.
        elected_uncleanly: names of topics for which somebody requested that.
        to_be_deleted: the ids of topics whose deletion was requested.
        requested_targets: by topic and partition, the replica sets that were requested.
        controllers: how many elections there were.
    """

    def __init__(
        self,
        *,
        allows_unclean: bool,
        on_state: Callable[[Held], None],
        on_deletion: Callable[[bytes], None],
    ) -> None:
        self.table: NodeTable
        self.elected_uncleanly: set[str] = set()
        self.to_be_deleted: set[bytes] = set()
        self.requested_targets: dict[tuple[str, int], list[frozenset[int]]] = {}
        self.controllers = 0
        self._allows_unclean = allows_unclean
        self._on_state = on_state
        self._on_deletion = on_deletion
        self._controller_epoch = 0
        self._made: dict[tuple[bytes, int], frozenset[int]] = {}
        self._leaders: dict[tuple[bytes, int, int], int] = {}
        self._states: dict[tuple[bytes, int], LeaderAndIsr] = {}
        self._topics: dict[str, TopicNode] = {}

    # -- at each transaction -------------------------------------------------------------------

    def check_change(self, touched: Paths) -> None:
        """A transaction touched some nodes."""
        states = []
        for path in sorted(touched):
            if path == znodes.CONTROLLER_EPOCH:
                self._check_controller()
            if path.startswith(f"{znodes.DELETE_TOPICS}/"):
                marked = self._topics.get(path.rpartition("/")[2])
                if marked is not None:
                    self._on_deletion(marked.topic_id)
            if not path.startswith(znodes.TOPICS):
                continue
            parts = path.split("/")
            if len(parts) == TOPIC_PARTS:
                self._check_topic(parts[3])
            elif len(parts) == STATE_PARTS:
                states.append((parts[3], int(parts[5])))
        for name, partition in states:
            self._check_state(name, partition)

    def _check_controller(self) -> None:
        node = self.table.get(znodes.CONTROLLER_EPOCH)
        epoch = 0 if node is None else int(node.data)
        if epoch < self._controller_epoch:
            raise InvariantBroken(f"the controller epoch went back to {epoch}")
        self.controllers += epoch > self._controller_epoch
        self._controller_epoch = epoch

    def _check_topic(self, name: str) -> None:
        node = self.table.get(znodes.topic_path(name))
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
            target = frozenset(replicas).difference(removing)
            made = self._made.setdefault((topic.topic_id, partition), target)
            if target != made and target not in self.requested_targets.get((name, partition), ()):
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
        self._on_state(held)

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
        if state.leader not in (NO_LEADER, *former.isr) and not self.may_be_unclean(held):
            raise InvariantBroken(f"an unclean leader that nobody allowed: {where}")
        if not set(state.isr) <= {*former.isr, state.leader}:
            raise InvariantBroken(f"the controller took somebody into the ISR: {where}")

    def may_be_unclean(self, held: Held) -> bool:
        """Whether somebody allowed a leader from outside the ISR."""
        name = held.topic_partition.topic
        if self._allows_unclean or name in self.elected_uncleanly:
            return True
        node = self.table.get(znodes.topic_config_path(name))
        overrides = {} if node is None else znodes.decode_config(node.data)
        return overrides.get(UNCLEAN) == "true"

    def note_leader(self, held: tuple[bytes, int, int], broker_id: int) -> None:
        """A broker leads, by topic id, partition and leader epoch: nobody else may in that."""
        if self._leaders.setdefault(held, broker_id) != broker_id:
            raise InvariantBroken(
                f"broker {broker_id} leads partition {held[1]} of {held[0].hex()} in epoch "
                f"{held[2]}, and so does {self._leaders[held]}"
            )

    # -- what the store holds ------------------------------------------------------------------

    def _held(self, name: str, partition: int) -> Held | None:
        topic = self._topics.get(name)
        if topic is None or partition not in topic.assignment:
            return None
        node = self.table.get(znodes.partition_state_path(name, partition))
        state = None if node is None else znodes.decode_partition_state(node.data, node.version)
        replicas = topic.assignment[partition]
        removing = topic.removing_replicas.get(partition, ())
        return Held(TopicPartition(name, partition), topic.topic_id, replicas, removing, state)

    def topic_ids(self) -> dict[str, bytes]:
        """Of the topics that are there and not being deleted, by name."""
        marked = self.table.children(znodes.DELETE_TOPICS) or []
        return {name: topic.topic_id for name, topic in self._topics.items() if name not in marked}

    def partition_count(self, name: str) -> int:
        """How many partitions a topic has; none if it is not there."""
        topic = self._topics.get(name)
        return 0 if topic is None else len(topic.assignment)

    def all_held(self) -> list[Held]:
        """Every partition of every topic that is not being deleted."""
        found = [
            self._held(name, partition)
            for name in self.topic_ids()
            for partition in self._topics[name].assignment
        ]
        return [held for held in found if held is not None]

    @property
    def is_moving(self) -> bool:
        """Whether any partition is on its way to other brokers."""
        return any(
            topic.adding_replicas or topic.removing_replicas for topic in self._topics.values()
        )

    def registered(self) -> list[int]:
        """The brokers that have a session."""
        return sorted(int(each) for each in self.table.children(znodes.BROKER_IDS) or [])

    # -- at rest -------------------------------------------------------------------------------

    def check_rest(self, nodes: Sequence[Node]) -> None:
        """Nothing goes on any more, though some brokers may be dead."""
        alive = [node for node in nodes if node.is_alive]
        if not alive:
            return
        controllers = [node for node in alive if node.is_controller]
        if len(controllers) != 1:
            raise InvariantBroken(f"{len(controllers)} controllers at rest")
        held_partitions = self.all_held()
        for held in held_partitions:
            _check_leadership(held, alive)
            for node in alive:
                _check_view(node, held)
                _check_replica(node, held)
        for node in alive:
            _check_strays(node, held_partitions, alive)
            self._check_features(node)

    def _check_features(self, node: Node) -> None:
        """It goes by the levels that are finalized."""
        stored = self.table.get(znodes.FEATURE)
        levels = DEFAULT_LEVELS if stored is None else znodes.decode_feature(stored.data).levels
        assert node.broker is not None
        known = node.broker.features.levels
        if known != levels:
            raise InvariantBroken(f"{node} goes by features {known}, finalized are {levels}")

    def check_health(self, nodes: Sequence[Node]) -> None:
        """All brokers live, and all replicas caught up: nothing is left undone."""
        if self.table.children(znodes.DELETE_TOPICS):
            raise InvariantBroken("a deletion is not finished though all brokers are here")
        if len(self.registered()) != len(nodes):
            raise InvariantBroken(f"only {self.registered()} are registered")
        for name, topic in self._topics.items():
            if topic.adding_replicas or topic.removing_replicas:
                raise InvariantBroken(f"{name} is still on its way: {topic}")
        for held in self.all_held():
            if held.state is None or held.state.leader == NO_LEADER:
                raise InvariantBroken(f"no leader: {held}")
            if set(held.state.isr) != set(held.replicas):
                raise InvariantBroken(f"not all in sync: {held}")


def _check_leadership(held: Held, alive: Iterable[Node]) -> None:
    """Whoever can lead does, and who is gone is not in the ISR."""
    able = [node.broker_id for node in alive if node.broker_id in held.replicas]
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


def _check_view(node: Node, held: Held) -> None:
    """What a broker tells clients is what the store holds."""
    assert node.broker is not None
    known = node.broker.metadata_cache.get_partition_info(*held.topic_partition)
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
        raise InvariantBroken(f"{node} knows {known}: {held}")


def _check_replica(node: Node, held: Held) -> None:
    """A broker leads and follows as the store says."""
    state = held.state
    if state is None or node.broker_id not in held.replicas:
        return
    has = node.partitions.get(held.topic_partition)
    if has is None or (has.topic_id, has.leader, has.leader_epoch) != (
        held.topic_id,
        state.leader,
        state.leader_epoch,
    ):
        raise InvariantBroken(f"{node} hosts {has}: {held}")


def _check_strays(node: Node, held_partitions: Sequence[Held], alive: Sequence[Node]) -> None:
    """A broker knows of nothing that is not there any more."""
    assert node.broker is not None
    known = {held.topic_partition: held for held in held_partitions}
    cache = node.broker.metadata_cache
    deleted = {
        each
        for each in cache.get_all_partitions()
        if each not in known or known[each].state is None
    }
    if deleted:
        raise InvariantBroken(f"{node} still knows {deleted}")
    stray = [
        each
        for each in node.partitions
        if each not in known or node.broker_id not in known[each].replicas
    ]
    if stray:
        raise InvariantBroken(f"{node} still has {stray}")
    if set(cache.snapshot.alive_brokers) != {each.broker_id for each in alive}:
        raise InvariantBroken(f"{node} knows {set(cache.snapshot.alive_brokers)}")
