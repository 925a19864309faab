"""A controller with a real store, and a channel that writes down what it is told to send."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.controller.channel import LeaderAndIsr, StopReplica
from odradek.broker.controller.controller import Controller
from odradek.broker.controller.live_broker import EndPoint, LiveBroker
from odradek.broker.controller.registration import register_broker
from odradek.broker.metadata_cache import MetadataCache, MetadataUpdate
from odradek.broker.metadata_store.embedded_store import EmbeddedStore
from odradek.broker.metadata_store.store import MetadataStore, ensure_paths
from odradek.broker.metadata_store.znodes import BROKER_IDS
from odradek.protocol.errors import ErrorCode
from odradek.runtime.clock import ManualClock
from odradek.storage.topic_partition import TopicPartition

START_MS = 1_795_226_872_357

Sent = tuple[int, LeaderAndIsr | StopReplica | MetadataUpdate | tuple[str, dict[str, str]]]


class RecordingChannel:
    """Answers every request with success, or with the code put in `refusals` for a partition.

    What is sent is kept in `sent`, and metadata updates go to a real cache. `gate`, once set
    to an event, holds LeaderAndIsr back until the event is set.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.cache = MetadataCache(1)
        self.refusals: dict[TopicPartition, ErrorCode] = {}
        self.gate: trio.Event | None = None

    async def send_leader_and_isr(
        self, broker_id: int, request: LeaderAndIsr
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.sent.append((broker_id, request))
        if self.gate is not None:
            await self.gate.wait()
        return {
            state.topic_partition: self.refusals.get(state.topic_partition, ErrorCode.NONE)
            for state in request.partition_states
        }

    async def send_stop_replica(
        self, broker_id: int, request: StopReplica
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.sent.append((broker_id, request))
        return {tp: self.refusals.get(tp, ErrorCode.NONE) for tp, _ in request.partitions}

    async def send_update_metadata(self, broker_id: int, request: MetadataUpdate) -> None:
        self.sent.append((broker_id, request))
        if broker_id == self.cache.broker_id:
            self.cache.update_metadata(request)

    async def send_topic_config(
        self, broker_id: int, topic: str, overrides: Mapping[str, str]
    ) -> None:
        self.sent.append((broker_id, (topic, dict(overrides))))
        if broker_id == self.cache.broker_id:
            self.cache.update_topic_config(topic, overrides)

    def leader_and_isr(self) -> list[LeaderAndIsr]:
        return [request for _, request in self.sent if isinstance(request, LeaderAndIsr)]

    def stop_replica(self) -> list[StopReplica]:
        return [request for _, request in self.sent if isinstance(request, StopReplica)]

    def update_metadata(self) -> list[MetadataUpdate]:
        return [request for _, request in self.sent if isinstance(request, MetadataUpdate)]


def live_broker(broker_id: int) -> LiveBroker:
    """A broker with two listeners."""
    return LiveBroker(
        broker_id,
        (
            EndPoint("PLAINTEXT", "127.0.0.1", 9090 + broker_id),
            EndPoint("INTERNAL", "10.0.0.1", 19090 + broker_id),
        ),
    )


class Cluster:
    """One file of metadata, and a controller of broker 1 over it for each `running`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "metadata.sqlite"
        self.clock = ManualClock(START_MS)
        self.config = BrokerConfig.from_sources({})
        self.channel = RecordingChannel()

    def configure(self, **settings: str) -> None:
        """Broker settings, with '_' for '.' in their names."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = BrokerConfig.from_sources(given)

    @asynccontextmanager
    async def store(self, owner: str) -> AsyncIterator[EmbeddedStore]:
        """A session on the metadata."""
        store = EmbeddedStore(self.path, clock=self.clock, owner=owner)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def register(self, store: MetadataStore, *broker_ids: int) -> None:
        """Let other brokers be there for as long as the store's session lasts."""
        await ensure_paths(store, [BROKER_IDS])
        for broker_id in broker_ids:
            await register_broker(store, live_broker(broker_id), START_MS)

    def controller(self, store: MetadataStore) -> Controller:
        """A controller that is not started; its channel has sent nothing."""
        self.channel = RecordingChannel()
        return Controller(
            broker=live_broker(1),
            store=store,
            channel=self.channel,
            config=self.config,
            clock=self.clock,
            random=random.Random(7),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Controller]:
        """A started controller, stopped in good order at the end."""
        async with self.store("broker-1") as store:
            controller = self.controller(store)
            await controller.start()
            yield controller
            await controller.stop()
