"""A controller with a real store, and a channel that writes down what it is told to send."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from odradek.common.errors import ErrorCode
from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.controller.channel.channel import (
    BecomeLeaderOrFollower,
    ControllerRequest,
    OnAnswer,
    StopReplica,
    UpdateMetadata,
)
from odradek.controller.controller import Controller
from odradek.controller.registration import register_broker
from odradek.metadata.metadata_cache import MetadataCache, MetadataUpdate
from odradek.metadata_store.embedded.embedded_store import LOOK_FOR_DEAD_MS, EmbeddedStore
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import (
    SESSION_TIMEOUT_MS,
    MetadataStore,
    Operation,
    Result,
    ensure_paths,
)
from odradek.metadata_store.znodes import BROKER_IDS
from odradek.runtime.clock import ManualClock

from .unsynced_store import UnsyncedStore

START_MS = 1_795_226_872_357

Sent = tuple[int, ControllerRequest]


class HeldStore(UnsyncedStore):
    """A store whose writes wait while it is held, as a slow server's, or lose their answers.

    Attributes:
        answers: how many writes are answered; the answer to the next one is lost, those to
            later ones are not.
        writes: how many were done.
    """

    held: trio.Event | None = None
    answers: int | None = None
    writes = 0

    def hold(self) -> trio.Event:
        """Let every write from now on wait for the event."""
        self.held = trio.Event()
        return self.held

    @property
    def watch_count(self) -> int:
        """How many watches are set."""
        return sum(len(watches) for watches in self._watches._by_path.values())

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do it, once it may."""
        if self.held is not None:
            await self.held.wait()
        results = await super().multi(operations)
        self.writes += 1
        if self.answers is not None:
            self.answers -= 1
            if self.answers < 0:
                self.answers = None
                raise StoreUnreachable(operations[0].path, "the answer was lost")
        return results


class RecordingChannel:
    """Answers every request with success, or with the code put in `refusals` for a partition.

    A key of `refusals` may also be a broker and a partition, where only that one refuses. What
    is sent is kept in `sent`, and each broker's metadata updates go to a real cache. While
    `is_silent`, nothing is answered; `answer_all` does it then.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.caches: dict[int, MetadataCache] = {}
        self.refusals: dict[TopicPartition | tuple[int, TopicPartition], ErrorCode] = {}
        self.brokers: dict[int, LiveBroker] = {}
        self.silent_about: set[TopicPartition] = set()
        """Partitions that no answer names."""
        self.is_silent = False
        self._unanswered: list[Callable[[], None]] = []

    @property
    def cache(self) -> MetadataCache:
        """Broker 1's."""
        return self.cache_of(1)

    def cache_of(self, broker_id: int) -> MetadataCache:
        """What a broker was told of the cluster."""
        return self.caches.setdefault(broker_id, MetadataCache(broker_id))

    def add_broker(self, broker: LiveBroker) -> None:
        self.brokers[broker.broker_id] = broker

    def remove_broker(self, broker_id: int) -> None:
        self.brokers.pop(broker_id, None)

    def send(self, broker_id: int, request: ControllerRequest, on_answer: OnAnswer | None) -> None:
        assert broker_id in self.brokers, f"broker {broker_id} is not there to be told"
        self.sent.append((broker_id, request))
        requested: list[TopicPartition] = []
        if isinstance(request, UpdateMetadata):
            self.cache_of(broker_id).update_metadata(
                MetadataUpdate(
                    request.controller_id,
                    request.controller_epoch,
                    request.live_brokers,
                    request.partition_states,
                    request.is_full,
                )
            )
        elif isinstance(request, StopReplica):
            requested = [stopped.topic_partition for stopped in request.partitions]
        else:
            requested = [state.topic_partition for state in request.partition_states]
        if on_answer is not None:
            errors = {
                each: self._answer(broker_id, each)
                for each in requested
                if each not in self.silent_about
            }
            if self.is_silent:
                self._unanswered.append(lambda: on_answer(errors))
            else:
                on_answer(errors)

    def _answer(self, broker_id: int, topic_partition: TopicPartition) -> ErrorCode:
        code = self.refusals.get((broker_id, topic_partition))
        return self.refusals.get(topic_partition, ErrorCode.NONE) if code is None else code

    def answer_all(self) -> None:
        """Answer what was not answered, and everything from now on."""
        self.is_silent = False
        unanswered, self._unanswered = self._unanswered, []
        for answer in unanswered:
            answer()

    def forget_unanswered(self) -> None:
        """What was not answered never will be."""
        self._unanswered.clear()

    def leader_and_isr(self, *broker_ids: int) -> list[BecomeLeaderOrFollower]:
        """Those sent to these brokers, to all where none are named."""
        return [
            each for each in self._sent_to(broker_ids) if isinstance(each, BecomeLeaderOrFollower)
        ]

    def stop_replica(self, *broker_ids: int) -> list[StopReplica]:
        """Those sent to these brokers, to all where none are named."""
        return [each for each in self._sent_to(broker_ids) if isinstance(each, StopReplica)]

    def update_metadata(self, *broker_ids: int) -> list[UpdateMetadata]:
        """Those sent to these brokers, to all where none are named."""
        return [each for each in self._sent_to(broker_ids) if isinstance(each, UpdateMetadata)]

    def _sent_to(self, broker_ids: Sequence[int]) -> list[ControllerRequest]:
        return [each for to, each in self.sent if not broker_ids or to in broker_ids]


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
    """One file of metadata, and a broker's controller over it for each `running`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "metadata.sqlite"
        self.clock = ManualClock(START_MS)
        self.configure()
        self.channels: dict[int, RecordingChannel] = {1: RecordingChannel()}
        self._started: list[int] = []
        self.stores: dict[int, HeldStore] = {}
        """The sessions of the controllers that run, by broker."""

    @property
    def channel(self) -> RecordingChannel:
        """What broker 1 sends as the controller."""
        return self.channels[1]

    @property
    def controller_store(self) -> HeldStore:
        """The session of broker 1's controller."""
        return self.stores[1]

    def configure(self, **settings: str) -> None:
        """Broker settings, with '_' for '.' in their names."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        given.setdefault("odradek.await.topic.creation", "true")
        self.config = BrokerConfig.from_sources(given)

    def new_session(self) -> HeldStore:
        """A session on the metadata that is not open yet."""
        return HeldStore(self.path, clock=self.clock)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[HeldStore]:
        """A session on the metadata."""
        store = self.new_session()
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    def let_others_time_out(self, observer: EmbeddedStore) -> None:
        """Let so much time pass that every session ends but the observer's own."""
        for _ in range(3 * SESSION_TIMEOUT_MS // LOOK_FOR_DEAD_MS):
            self.clock.advance(LOOK_FOR_DEAD_MS)
            observer.poll(self.clock.monotonic_ms())

    async def register(self, store: MetadataStore, *broker_ids: int) -> None:
        """Let other brokers be there for as long as the store's session lasts."""
        await ensure_paths(store, [BROKER_IDS])
        for broker_id in broker_ids:
            await register_broker(store, live_broker(broker_id), START_MS)

    def controller(self, store: MetadataStore, broker_id: int = 1) -> Controller:
        """A broker's controller that is not started; its channel has sent nothing."""
        channel = self.channels[broker_id] = RecordingChannel()
        self._started.append(broker_id)  # each has other topic ids
        return Controller(
            broker=live_broker(broker_id),
            store=store,
            channel=channel,
            config=self.config,
            clock=self.clock,
            random=random.Random(len(self._started)),
        )

    @asynccontextmanager
    async def running(self, broker_id: int = 1) -> AsyncIterator[Controller]:
        """A broker's started controller, stopped in good order at the end."""
        async with self.store() as store:
            self.stores[broker_id] = store
            controller = self.controller(store, broker_id)
            await controller.start()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(controller.run)
                yield controller
                await controller.stop()
                nursery.cancel_scope.cancel()
