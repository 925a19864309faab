"""A cluster's elected controller without its shell: a `ActiveController` over a real store.

Brokers are sessions of that store and come and go at a word; what they are told is written
down. Nothing happens by itself: each change is followed by the event that it leads to.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from odradek.common.live_broker import LiveBroker
from odradek.common.partition_state import LeaderAndIsr, PartitionState
from odradek.common.topic_partition import TopicPartition
from odradek.controller.active_controller import ActiveController
from odradek.controller.context import Topic
from odradek.controller.event_queue import Event
from odradek.controller.partitions.leader_elections import LeaderElections
from odradek.controller.registration import register_broker, stand_for_election
from odradek.controller.topics.assignment import Assignment
from odradek.controller.topics.planning import TopicCreation
from odradek.controller.topics.topic_operations import TopicOperations
from odradek.metadata_store import znodes
from odradek.metadata_store.store import MetadataStore, ensure_paths
from odradek.runtime.long_work import Pace

from .cluster import START_MS, Cluster, RecordingChannel, live_broker

State = tuple[int, int, tuple[int, ...]]
"""Leader, leader epoch and ISR."""


class ElectedController:
    """Broker 1 is the controller; brokers 1, 2, ... are registered."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.channel = RecordingChannel()
        self.active: ActiveController
        self.events: deque[Event] = deque()
        self.sessions: dict[int, MetadataStore] = {}

    @property
    def store(self) -> MetadataStore:
        """The controller's own session."""
        return self.sessions[1]

    @property
    def topics(self) -> TopicOperations:
        """The verbs on topics."""
        return TopicOperations(self.active)

    @property
    def leaders(self) -> LeaderElections:
        """The verbs on leaders and replicas."""
        return LeaderElections(self.active)

    async def elect(self, broker_id: int = 1, *, restarted: Sequence[int] = ()) -> None:
        """Have a broker elected; the former controller is one no more."""
        session = self.sessions[broker_id]
        if "controller" in await session.children("/"):
            await session.delete(znodes.CONTROLLER)
        standing = await stand_for_election(
            session, broker_id, is_controller=False, now_ms=START_MS
        )
        assert standing.election is not None
        self.channel = RecordingChannel()
        self.active = ActiveController(
            broker_id,
            standing.election,
            store=session,
            channel=self.channel,
            config=self.cluster.config,
            random=random.Random(7),
            post=self.events.append,
            keep_pace=Pace().keep,
        )
        await self.active.failover(restarted)
        await self.settle()

    async def settle(self) -> None:
        """Do what the answers of brokers lead to."""
        while self.events:
            await self.events.popleft()()

    # -- brokers ----------------------------------------------------------------------

    async def register(self, *broker_ids: int) -> None:
        """Brokers come, or come back; nobody has noticed yet."""
        for broker_id in broker_ids:
            store = self.cluster.new_session()
            await store.open()
            self.sessions[broker_id] = store
            await ensure_paths(store, znodes.PERSISTENT_PATHS)
            await register_broker(store, live_broker(broker_id), START_MS)

    async def unregister(self, *broker_ids: int) -> None:
        """Brokers go; nobody has noticed yet."""
        for broker_id in broker_ids:
            await self.sessions.pop(broker_id).close()

    async def start(self, *broker_ids: int) -> None:
        """Brokers come, and the controller notices."""
        await self.register(*broker_ids)
        await self.notice_brokers()

    async def fail(self, *broker_ids: int) -> None:
        """Brokers die, and the controller notices."""
        await self.unregister(*broker_ids)
        await self.notice_brokers()

    async def notice_brokers(self) -> None:
        """The controller looks who is there."""
        await self.active.brokers_changed()
        await self.settle()

    def broker(self, broker_id: int) -> LiveBroker:
        """A broker as the controller knows it."""
        return self.active.context.live_brokers[broker_id]

    # -- topics -----------------------------------------------------------------------

    async def create(
        self, name: str, assignment: Assignment, config: Mapping[str, str] | None = None
    ) -> Topic:
        """Make a topic; what was sent for it is forgotten."""
        configs = list((config or {}).items())
        target = TopicCreation(name, assignments=list(assignment.items()), configs=configs)
        (created,) = await self.topics.create([target])
        assert created.error is None, created.error.message
        await self.settle()
        self.channel.sent.clear()
        return self.topic(name)

    async def write_topic(self, assignment: Assignment, name: str = "t") -> None:
        """Somebody else writes a topic's nodes; the controller has not heard of it."""
        node = znodes.TopicNode(b"n" * 16, assignment)
        await self.store.create(znodes.topic_path(name), znodes.encode_topic(node))
        await self.store.create(znodes.partitions_path(name))

    def topic(self, name: str) -> Topic:
        """A topic as the controller knows it."""
        topic = self.active.context.any_topic(name)
        assert topic is not None
        return topic

    async def node(self, name: str = "t", partition: int = 0) -> LeaderAndIsr:
        """A partition's state as the store holds it."""
        node = await self.store.get(znodes.partition_state_path(name, partition))
        return znodes.decode_partition_state(node.data, node.version)

    async def state(self, name: str = "t", partition: int = 0) -> State:
        """The leader, leader epoch and ISR that the store holds; the controller knows the same."""
        node = await self.node(name, partition)
        assert self.topic(name).leaderships[partition] == node
        return node.leader, node.leader_epoch, node.isr

    async def assigned(self, name: str = "t") -> znodes.TopicNode:
        """A topic's node."""
        return znodes.decode_topic((await self.store.get(znodes.topic_path(name))).data)

    async def write_isr(self, isr: tuple[int, ...], name: str = "t", partition: int = 0) -> None:
        """A leader changes the ISR; the controller has not heard of it."""
        path = znodes.partition_state_path(name, partition)
        node = await self.store.get(path)
        state = znodes.decode_partition_state(node.data)._replace(isr=isr)
        await self.store.set(path, znodes.encode_partition_state(state), node.version)

    async def change_isr(self, isr: tuple[int, ...], name: str = "t", partition: int = 0) -> None:
        """A leader changes the ISR, and the controller is notified of it."""
        await self.write_isr(isr, name, partition)
        note = znodes.encode_isr_change([TopicPartition(name, partition)])
        await self.store.create(f"{znodes.ISR_CHANGES}/isr_change_", note, sequential=True)
        await self.active.isr_changed()
        await self.settle()

    # -- what was told ------------------------------------------------------------------

    def led(self, broker_id: int, name: str = "t", partition: int = 0) -> list[PartitionState]:
        """What a broker was told to do with a partition, one after the other."""
        return [
            state
            for request in self.channel.leader_and_isr(broker_id)
            for state in request.partition_states
            if state.topic_partition == (name, partition)
        ]

    def stopped(self, broker_id: int) -> list[tuple[str, int, bool]]:
        """The replicas that a broker was told to stop: topic, partition, and whether to delete."""
        return [
            (*stopped.topic_partition, stopped.delete)
            for request in self.channel.stop_replica(broker_id)
            for stopped in request.partitions
        ]

    def reported(
        self, broker_id: int, name: str = "t", partition: int = 0
    ) -> PartitionState | None:
        """What a broker now tells clients of a partition."""
        return self.channel.cache_of(broker_id).get_partition_info(name, partition)


@asynccontextmanager
async def elected_controller(
    cluster: Cluster, brokers: Sequence[int] = (1, 2, 3)
) -> AsyncIterator[ElectedController]:
    """A controller that has taken over a cluster of these brokers; its start is forgotten."""
    controller = ElectedController(cluster)
    try:
        await controller.register(*brokers)
        await controller.elect()
        controller.channel.sent.clear()
        yield controller
    finally:
        for session in controller.sessions.values():
            await session.close()
