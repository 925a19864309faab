"""MetadataCache: what this broker knows of the cluster, as of the controller's last update.

Every broker answers Metadata from its own copy, which the controller replaces piece by
piece with UpdateMetadata (article 000). Readers take the snapshot once and use it
throughout: it never changes, a newer one takes its place. What they read may be out of
date; clients recover by asking again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final

from ..common.live_broker import LiveBroker
from ..common.named_tuple import NamedTuple
from ..common.partition_state import LEADER_DURING_DELETE, PartitionState
from ..common.sentinels import NO_LEADER, ZERO_UUID
from ..common.topic_partition import TopicPartition
from ..runtime.steps import Steps, run_at_once

logger = logging.getLogger(__name__)
state_change_logger = logging.getLogger("odradek.state_change")

PartitionStates = Mapping[int, PartitionState]

NO_PARTITIONS: Final[PartitionStates] = {}


class BrokerNode(NamedTuple):
    """Where a client reaches a broker on one listener."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class MetadataSnapshot(NamedTuple):
    """The cluster at one moment. Nobody changes the maps in it.

    Attributes:
        partition_states: topic to partition index to state, indexes ascending.
        topic_ids: topic to its id; `topic_names` is the inverse.
        topic_configs: topic to its overrides.
        controller_id: the active controller, None when it is not known.
        alive_brokers: by id.
        alive_nodes: broker id to listener name to node.
    """

    partition_states: Mapping[str, PartitionStates]
    topic_ids: Mapping[str, bytes]
    topic_names: Mapping[bytes, str]
    topic_configs: Mapping[str, Mapping[str, str]]
    controller_id: int | None
    alive_brokers: Mapping[int, LiveBroker]
    alive_nodes: Mapping[int, Mapping[str, BrokerNode]]


EMPTY_SNAPSHOT: Final = MetadataSnapshot({}, {}, {}, {}, None, {}, {})


class MetadataUpdate(NamedTuple):
    """What an UpdateMetadata request says.

    Attributes:
        controller_id: of the sender; negative when there is no controller.
        live_brokers: all that are alive, not only new ones.
        partition_states: those that changed; a leader of `LEADER_DURING_DELETE` removes.
        is_full: whether there are no partitions but these; None of a controller that never says
            so, as Kafka's in ZooKeeper mode.
    """

    controller_id: int
    controller_epoch: int
    live_brokers: Sequence[LiveBroker]
    partition_states: Sequence[PartitionState] = ()
    is_full: bool | None = False


class PreparedUpdate(NamedTuple):
    """What an update makes of a snapshot.

    Attributes:
        update: with the deletions in it that it implies.
        former: the snapshot that it was worked out from.
        snapshot: the new one.
        deleted: the partitions that the update removes, whether they were known here or not: who
            was away may still keep something of theirs.
    """

    update: MetadataUpdate
    former: MetadataSnapshot
    snapshot: MetadataSnapshot
    deleted: list[TopicPartition]


class MetadataCache:
    """Holds the current snapshot and answers from it.

    Args:
        broker_id: whose cache it is.

    Attributes:
        snapshot: replaced whole by each update; hot paths compare its identity.
        racks: of brokers, those that are gone among them: nobody says what theirs were.
        is_complete: whether a controller has sent everything there is since the start.
        listeners: called after each change of the snapshot; they may not wait.
        derived: what readers worked out from the current snapshot and want to keep with
            it, by a key of theirs; a new one with each update.
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.snapshot = EMPTY_SNAPSHOT
        self.racks: Mapping[int, str] = {}
        self.is_complete = False
        self._is_unmarked = False
        self.listeners: list[Callable[[], None]] = []
        self.derived: dict[Any, Any] = {}

    # -- is it there ------------------------------------------------------------------

    def contains(self, topic: str) -> bool:
        """Whether the topic is known."""
        return topic in self.snapshot.partition_states

    def contains_partition(self, topic: str, partition: int) -> bool:
        """Whether the partition is known."""
        return partition in self.snapshot.partition_states.get(topic, NO_PARTITIONS)

    def has_partition(self, topic_partition: TopicPartition) -> bool:
        """The same, of both in one."""
        return self.contains_partition(*topic_partition)

    def is_complete_with(self, topics: Set[str]) -> bool:
        """Whether there is a whole view of a cluster that has these topics.

        A controller that does not mark the update that names everything is taken at its word
        when this broker is alive and all of the topics are known.
        """
        return self.is_complete or (
            self._is_unmarked
            and self.broker_id in self.snapshot.alive_brokers
            and topics <= self.snapshot.partition_states.keys()
        )

    # -- what is it -------------------------------------------------------------------

    def get_partition_info(self, topic: str, partition: int) -> PartitionState | None:
        """A partition's state, None when it is not known."""
        return self.snapshot.partition_states.get(topic, NO_PARTITIONS).get(partition)

    def get_all_topics(self) -> set[str]:
        """The names of all topics."""
        return set(self.snapshot.partition_states)

    def get_all_partitions(self) -> set[TopicPartition]:
        """All partitions of all topics."""
        return {
            TopicPartition(topic, partition)
            for topic, partitions in self.snapshot.partition_states.items()
            for partition in partitions
        }

    def get_partition_replica_endpoints(
        self, topic_partition: TopicPartition, listener_name: str
    ) -> dict[int, BrokerNode]:
        """Where the replicas of a partition are reached, by broker id.

        Replicas whose broker is not alive or has no such listener are left out.
        """
        snapshot = self.snapshot
        partitions = snapshot.partition_states.get(topic_partition.topic, NO_PARTITIONS)
        state = partitions.get(topic_partition.partition)
        if state is None:
            return {}
        endpoints = {}
        for replica in state.replicas:
            node = snapshot.alive_nodes.get(replica, {}).get(listener_name)
            if node is not None:
                endpoints[replica] = node
        return endpoints

    def has_alive_broker(self, broker_id: int) -> bool:
        """Whether the broker is alive, as far as is known."""
        return broker_id in self.snapshot.alive_brokers

    def get_alive_broker_node(self, broker_id: int, listener_name: str) -> BrokerNode | None:
        """Where a broker is reached, None when it is not alive or has no such listener."""
        return self.snapshot.alive_nodes.get(broker_id, {}).get(listener_name)

    def get_alive_brokers(self, listener_name: str) -> list[BrokerNode]:
        """The nodes of all alive brokers that have the listener, by id."""
        return nodes_of_listener(self.snapshot, listener_name)

    def topic_id(self, topic: str) -> bytes | None:
        """A topic's id, None when the topic is not known."""
        return self.snapshot.topic_ids.get(topic)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The topic of an id, None when there is none."""
        return self.snapshot.topic_names.get(topic_id)

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; 0 when it is not known."""
        return len(self.snapshot.partition_states.get(topic, NO_PARTITIONS))

    def topic_config(self, topic: str) -> Mapping[str, str]:
        """A topic's overrides; none when it is not known."""
        return self.snapshot.topic_configs.get(topic, {})

    @property
    def controller_id(self) -> int | None:
        """The active controller, None when it is not known."""
        return self.snapshot.controller_id

    def derived_from(self, snapshot: MetadataSnapshot) -> dict[Any, Any]:
        """`derived` for a reader that holds a snapshot, which may be an older one by now."""
        return self.derived if snapshot is self.snapshot else {}

    # -- updates ----------------------------------------------------------------------

    def update_metadata(
        self, update: MetadataUpdate, correlation_id: int = 0
    ) -> list[TopicPartition]:
        """Put a new snapshot in place of the current one (ZkMetadataCache.updateMetadata).

        Args:
            update: what the controller says.
            correlation_id: of the request that said it, for the state-change log.

        Returns:
            The partitions that the update removes.
        """
        prepared = run_at_once(self.prepare(update))
        self.commit(prepared, correlation_id)
        return prepared.deleted

    def prepare(self, update: MetadataUpdate) -> Steps[PreparedUpdate]:
        """Work out the snapshot that an update makes; it yields after each partition."""
        former = self.snapshot
        alive_nodes = {broker.broker_id: _nodes_of(broker) for broker in update.live_brokers}
        changed = former._replace(
            controller_id=None if update.controller_id < 0 else update.controller_id,
            alive_brokers={broker.broker_id: broker for broker in update.live_brokers},
            alive_nodes=alive_nodes,
        )
        deleted: list[TopicPartition] = []
        if update.is_full:
            missed = yield from _missed_deletions(former, update.partition_states)
            update = update._replace(partition_states=[*update.partition_states, *missed])
        if update.partition_states:
            changed = yield from _with_partitions(changed, update.partition_states, deleted)
        return PreparedUpdate(update, former, changed, deleted)

    def commit(self, prepared: PreparedUpdate, correlation_id: int = 0) -> bool:
        """Put a prepared snapshot in place of the current one, all at once.

        Args:
            prepared: what an update makes of a snapshot.
            correlation_id: see `update_metadata`.

        Returns:
            False, and nothing is done, if it was not worked out from the current snapshot.
        """
        if prepared.former is not self.snapshot:
            return False
        update = prepared.update
        self._check_listeners(prepared.snapshot.alive_nodes)
        self._is_unmarked = update.is_full is None
        if update.is_full:
            self.is_complete = True
        if update.partition_states:
            _log_state_changes(update, len(prepared.deleted), correlation_id)
        self._note_racks(update.live_brokers)
        self._replace(prepared.snapshot)
        return True

    def _note_racks(self, brokers: Iterable[LiveBroker]) -> None:
        racks = {each.broker_id: each.rack for each in brokers if each.rack is not None}
        if racks.items() - self.racks.items():
            # Who holds the mapping that there was keeps it as it is.
            self.racks = {**self.racks, **racks}

    def replicas_failed(self, partitions: Iterable[TopicPartition]) -> None:
        """This broker has lost its replicas of these, and so it leads them no more.

        The controller elects other leaders; until then, and where it cannot since the metadata
        were in the directory that failed, this holds.
        """
        lost = [
            _without_replica(state, self.broker_id)
            for topic_partition in partitions
            if (state := self.get_partition_info(*topic_partition)) is not None
            and self.broker_id in state.replicas
        ]
        if lost:
            self._replace(run_at_once(_with_partitions(self.snapshot, lost, [])))

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Put a topic's new overrides in a new snapshot; nothing where it is not known."""
        if topic in self.snapshot.partition_states:
            configs = {**self.snapshot.topic_configs, topic: overrides}
            self._replace(self.snapshot._replace(topic_configs=configs))

    def _replace(self, snapshot: MetadataSnapshot) -> None:
        self.snapshot = snapshot
        self.derived = {}
        for listener in list(self.listeners):
            listener()

    def _check_listeners(self, alive_nodes: Mapping[int, Mapping[str, BrokerNode]]) -> None:
        own = alive_nodes.get(self.broker_id)
        if own is not None and any(nodes.keys() != own.keys() for nodes in alive_nodes.values()):
            logger.error(
                "the brokers' listeners differ, so some clients will not find some leaders: %s",
                {broker_id: sorted(nodes) for broker_id, nodes in alive_nodes.items()},
            )


def nodes_of_listener(snapshot: MetadataSnapshot, listener_name: str) -> list[BrokerNode]:
    """The nodes of all alive brokers that have the listener, by id."""
    return [
        by_listener[listener_name]
        for _, by_listener in sorted(snapshot.alive_nodes.items())
        if listener_name in by_listener
    ]


def _nodes_of(broker: LiveBroker) -> dict[str, BrokerNode]:
    return {
        endpoint.listener_name: BrokerNode(
            broker.broker_id, endpoint.host, endpoint.port, broker.rack
        )
        for endpoint in broker.endpoints
    }


def _without_replica(state: PartitionState, broker_id: int) -> PartitionState:
    offline = sorted({*state.offline_replicas, broker_id})
    leader = NO_LEADER if state.leader == broker_id else state.leader
    return state._replace(leader=leader, offline_replicas=tuple(offline))


def _missed_deletions(
    snapshot: MetadataSnapshot, states: Iterable[PartitionState]
) -> Steps[list[PartitionState]]:
    """The partitions of a snapshot of which an update that names all says nothing."""
    named: dict[str, set[int]] = {}
    for state in states:
        named.setdefault(state.topic, set()).add(state.partition)
        yield
    missed: list[PartitionState] = []
    for topic, partitions in snapshot.partition_states.items():
        for partition in partitions.keys() - named.get(topic, ()):
            missed.append(partitions[partition]._replace(leader=LEADER_DURING_DELETE))
            yield
    return missed


def _with_partitions(
    snapshot: MetadataSnapshot, states: Iterable[PartitionState], deleted: list[TopicPartition]
) -> Steps[MetadataSnapshot]:
    """The snapshot with the states in it; those being deleted leave and are listed.

    Only the topics that are spoken of are copied, so an update costs what it changes. It yields
    after each partition.
    """
    partition_states: dict[str, PartitionStates] = dict(snapshot.partition_states)
    topic_ids = dict(snapshot.topic_ids)
    topic_names = dict(snapshot.topic_names)
    topic_configs = dict(snapshot.topic_configs)
    copied: dict[str, dict[int, PartitionState]] = {}
    topic = None
    for state in states:  # mostly topic by topic
        yield
        if state.topic != topic:
            topic = state.topic
            is_noted = False
            if topic not in copied:
                copied[topic] = dict(partition_states.get(topic, NO_PARTITIONS))
            partitions = copied[topic]
        if state.leader == LEADER_DURING_DELETE:
            partitions.pop(state.partition, None)
            deleted.append(state.topic_partition)
            continue
        partitions[state.partition] = state
        if not is_noted:
            is_noted = True
            topic_configs[topic] = state.config
            former_id = topic_ids.get(topic)
            if former_id != state.topic_id:
                if former_id is not None:
                    topic_names.pop(former_id, None)
                topic_ids[topic] = state.topic_id
                if state.topic_id != ZERO_UUID:  # old versions of the request know no ids
                    topic_names[state.topic_id] = topic
    for topic, partitions in copied.items():
        yield
        if partitions:
            indexes = sorted(partitions)
            if indexes != list(partitions):
                partitions = {index: partitions[index] for index in indexes}
            partition_states[topic] = partitions
        else:
            partition_states.pop(topic, None)
            topic_configs.pop(topic, None)
            former_id = topic_ids.pop(topic, None)
            if former_id is not None:
                topic_names.pop(former_id, None)
    return snapshot._replace(
        partition_states=partition_states,
        topic_ids=topic_ids,
        topic_names=topic_names,
        topic_configs=topic_configs,
    )


def _log_state_changes(update: MetadataUpdate, deleted_count: int, correlation_id: int) -> None:
    sender = (update.controller_id, update.controller_epoch, correlation_id)
    if state_change_logger.isEnabledFor(logging.DEBUG):
        for state in update.partition_states:
            verb = "removed" if state.leader == LEADER_DURING_DELETE else "cached"
            state_change_logger.debug(
                "%s %s, as controller %d of epoch %d said with correlation id %d",
                verb,
                state,
                *sender,
            )
    state_change_logger.info(
        "cached %d partitions and removed %d, as controller %d of epoch %d said "
        "with correlation id %d",
        len(update.partition_states) - deleted_count,
        deleted_count,
        *sender,
    )
