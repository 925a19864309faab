"""A broker of the controllers' simulation: its session, its controller, the requests it received.

It runs the product's own `ActiveController`; the shell around it, and the replicas, are here the
few lines that decisions depend on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple, Protocol

from ....common.errors import ErrorCode
from ....common.live_broker import EndPoint, LiveBroker
from ....common.partition_state import LeaderAndIsr, PartitionState
from ....common.topic_partition import TopicPartition
from ....config.broker_config import BrokerConfig
from ....controller.active_controller import ActiveController
from ....controller.channel.channel import (
    BecomeLeaderOrFollower,
    ControllerRequest,
    OnAnswer,
    StopReplica,
)
from ....controller.event_queue import Event
from ....controller.fenced_store import ControllerMoved
from ....controller.registration import BrokerIdTaken, register_broker, stand_for_election
from ....metadata.metadata_cache import MetadataCache, MetadataUpdate
from ....metadata_store import znodes
from ....metadata_store.errors import (
    BadVersion,
    MetadataStoreError,
    NoNode,
    SessionExpired,
    StoreUnreachable,
)
from ....metadata_store.store import SessionState, Watch, ensure_paths
from .store import SimulatedSession, SimulatedTree, Suspension

Task = Coroutine[Any, Any, None]

PAUSE_SHARE = 0.02
"""Of the places between two partitions, those at which a controller's step ends."""

CONTROLLER_WATCHES: tuple[
    tuple[str, Callable[[ActiveController], Coroutine[Any, Any, None]]], ...
] = (
    (znodes.BROKER_IDS, ActiveController.brokers_changed),
    (znodes.TOPICS, ActiveController.topics_changed),
    (znodes.DELETE_TOPICS, ActiveController.topics_changed),
    (znodes.ISR_CHANGES, ActiveController.isr_changed),
    (znodes.LOG_DIR_EVENTS, ActiveController.directories_changed),
)


class ClusterEnvironment(Protocol):
    """What a broker needs of the cluster around it."""

    random: Random
    config: BrokerConfig
    tree: SimulatedTree
    steps: int

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker's process runs."""

    def note_election(self, epoch: int, broker: SimulatedBroker) -> None:
        """A broker won an election."""

    def note_leader(self, state: PartitionState, broker_id: int) -> None:
        """A broker begins to lead."""

    def note_late(self, sent: QueuedRequest, broker_id: int) -> None:
        """A request that nobody waits for any more is still on its way."""


class QueuedRequest(NamedTuple):
    """A request on its way, and whom to tell the answer."""

    sender: SimulatedBroker
    request: ControllerRequest
    on_answer: OnAnswer | None


class SimulatedChannel:
    """Queues requests of one controller to each broker; the scheduler delivers them."""

    def __init__(self, cluster: ClusterEnvironment, sender: SimulatedBroker) -> None:
        self._cluster = cluster
        self._sender = sender
        self.queues: dict[int, deque[QueuedRequest]] = {}

    def add_broker(self, broker: LiveBroker) -> None:
        """A queue of its own for every life of a broker."""
        self.remove_broker(broker.broker_id)
        self.queues[broker.broker_id] = deque()

    def remove_broker(self, broker_id: int) -> None:
        """Drop what waits; the first may be on the wire, and arrive whenever it likes."""
        queue = self.queues.pop(broker_id, None)
        if queue:
            self._cluster.note_late(queue[0], broker_id)

    def send(self, broker_id: int, request: ControllerRequest, on_answer: OnAnswer | None) -> None:
        """Queue it."""
        queue = self.queues.get(broker_id)
        if queue is not None:
            queue.append(QueuedRequest(self._sender, request, on_answer))


class SimulatedBroker:
    """One broker.

    Attributes:
        epoch: of its registration; requests are served from then on.
        cut_off: brokers that this one cannot reach as the controller.
        events: what its controller has still to do, and `running` what it does.
        beside: what other tasks of the broker do, each waiting for the store.
        partitions: the replicas it has, of the last UpdateMetadata.
        failed: the partitions whose log directory failed.
    """

    def __init__(self, cluster: ClusterEnvironment, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.alive = False
        self.life = 0
        self.cut_off: set[int] = set()
        self._begin_life()

    def _begin_life(self) -> None:
        self.session = SimulatedSession(self.cluster.tree)
        self.channel = SimulatedChannel(self.cluster, self)
        self.active: ActiveController | None = None
        self.epoch = -1
        self.events: deque[Event] = deque()
        self.running: Task | None = None
        self.beside: list[Task] = []
        self.cache = MetadataCache(self.broker_id)
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.failed: set[TopicPartition] = set()
        self.controller_epoch = -1
        self._watches: list[Watch] = []

    # -- life ------------------------------------------------------------------------

    def start(self) -> None:
        """Come up with a new session; what it knew before is forgotten."""
        self.life += 1
        self._begin_life()
        self.alive = True
        self.session.begin()
        self.post(self._register)

    def crash(self) -> SimulatedSession:
        """Die; returns the session, which ends when the store notices."""
        self.alive = False
        self.drop_tasks()
        self.events.clear()
        self._stop_sending()
        self.session.fall_silent()
        return self.session

    def drop_tasks(self) -> None:
        """End what it was doing, wherever that is."""
        for task in [self.running, *self.beside]:
            if task is not None:
                task.close()
        self.running = None
        self.beside = []

    def expire(self) -> None:
        """The store ends the session; the broker lives, and learns of it later."""
        self.session.end(SessionState.EXPIRED)
        self.post(self._begin_again)

    async def _begin_again(self) -> None:
        if self.session.session_state is SessionState.CONNECTED:
            return
        self.resign()
        self.events.clear()
        await self.session.open()
        await self._register()

    async def _register(self) -> None:
        try:
            await ensure_paths(self.session, znodes.PERSISTENT_PATHS)
            endpoint = EndPoint("PLAINTEXT", "localhost", 9000 + self.broker_id)
            broker = await register_broker(
                self.session, LiveBroker(self.broker_id, (endpoint,)), self.cluster.steps
            )
        except BrokerIdTaken:  # its former session is not over yet
            self.post(self._register)
            return
        except StoreUnreachable:
            # What was done is unknown: only another session makes sure.
            self.session.end(SessionState.EXPIRED)
            self.post(self._begin_again)
            return
        self.epoch = broker.epoch
        await self.session.watch(znodes.CONTROLLER, lambda _: self.post(self.stand))
        await self.stand()

    # -- the controller's shell ----------------------------------------------------------

    def post(self, event: Event) -> None:
        """Put an event behind those that wait."""
        self.events.append(event)

    def post_to_controller(
        self, do: Callable[[ActiveController], Coroutine[Any, Any, None]]
    ) -> None:
        """Post an event for the active controller, dropped if the broker has resigned by then."""

        async def event() -> None:
            if self.active is not None:
                await do(self.active)

        self.post(event)

    def resign(self) -> None:
        """Be the controller no more."""
        while self._watches:
            self._watches.pop().cancel()
        if self.active is not None:
            self.active.resign()
            self.active = None

    def _stop_sending(self) -> None:
        for broker_id in list(self.channel.queues):
            self.channel.remove_broker(broker_id)

    async def stand(self) -> None:
        """Take the controller's place if it is free, leave it if another has it."""
        standing = await stand_for_election(
            self.session,
            self.broker_id,
            is_controller=self.active is not None,
            now_ms=self.cluster.steps,
        )
        if standing.is_controller and standing.election is None:
            return
        self.resign()
        if standing.election is None:
            return
        self.cluster.note_election(standing.election.epoch, self)
        self.active = ActiveController(
            self.broker_id,
            standing.election,
            store=self.session,
            channel=self.channel,
            config=self.cluster.config,
            random=self.cluster.random,
            post=self.post,
            keep_pace=self._keep_pace,
        )
        for path, changed in CONTROLLER_WATCHES:
            watch = await self.session.watch(
                path,
                lambda _, changed=changed: self.post_to_controller(changed),  # type: ignore[misc]  # bound now
            )
            self._watches.append(watch)
        await self.active.failover({self.broker_id})

    async def _keep_pace(self) -> None:
        """Now and then anything may happen here, as after a store verb."""
        if self.cluster.random.random() < PAUSE_SHARE:
            await Suspension()

    def step(self) -> None:
        """One store verb of the running event, or the next event's beginning."""
        if self.running is None:
            if not self.events:
                return
            event = self.events.popleft()()
            assert isinstance(event, Coroutine)
            self.running = event
        if self._advance(self.running):
            self.running = None

    def step_beside(self, index: int) -> None:
        """One store verb of a task that runs beside the events."""
        try:
            self.beside[index].send(None)
        except (StopIteration, SessionExpired):
            del self.beside[index]

    def _advance(self, task: Task) -> bool:
        """Let the event go on to its next verb; whether it is done. As `Controller` does."""
        try:
            task.send(None)
        except StopIteration:
            if self.active is not None and self.active.store.is_unsure:
                self._begin_anew()
        except ControllerMoved:
            self._begin_anew()
        except SessionExpired:
            self.resign()
        except MetadataStoreError:
            self._begin_anew()
        else:
            return False
        return True

    def _begin_anew(self) -> None:
        self.resign()
        self.post(self.stand)

    # -- what a broker does with requests --------------------------------------------

    def receive(self, request: ControllerRequest) -> dict[TopicPartition, ErrorCode]:
        """As the broker's handlers do, without logs."""
        requested = _partitions_of(request)
        if 0 <= request.broker_epoch < self.epoch:
            return dict.fromkeys(requested, ErrorCode.STALE_BROKER_EPOCH)
        if request.controller_epoch < self.controller_epoch:
            return dict.fromkeys(requested, ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        if isinstance(request, BecomeLeaderOrFollower):
            errors = {
                state.topic_partition: self._lead_or_follow(state)
                for state in request.partition_states
            }
            if request.is_full:
                for topic_partition in self.partitions.keys() - set(requested):
                    del self.partitions[topic_partition]
            return errors
        if isinstance(request, StopReplica):
            for stopped in request.partitions:
                self.partitions.pop(stopped.topic_partition, None)
            return {each: self._disk_error(each) for each in requested}
        self.cache.update_metadata(
            MetadataUpdate(
                request.controller_id,
                request.controller_epoch,
                request.live_brokers,
                request.partition_states,
                request.is_full,
            )
        )
        return {}

    def _disk_error(self, topic_partition: TopicPartition) -> ErrorCode:
        failed = topic_partition in self.failed
        return ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE

    def _lead_or_follow(self, state: PartitionState) -> ErrorCode:
        if state.topic_partition in self.failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self.partitions.get(state.topic_partition)
        if known is not None and known.topic_id == state.topic_id:
            if state.leader_epoch < known.leader_epoch:
                return ErrorCode.STALE_CONTROLLER_EPOCH
            if (
                state.leader_epoch == known.leader_epoch
                and state.partition_epoch < known.partition_epoch
            ):
                return ErrorCode.NONE  # this leader has changed the ISR since
        self.partitions[state.topic_partition] = state
        if state.leader == self.broker_id:
            self.cluster.note_leader(state, self.broker_id)
        return ErrorCode.NONE

    # -- what it does by itself ---------------------------------------------------------------

    def fail_disk(self, topic_partition: TopicPartition) -> None:
        """A log directory with a replica in it fails."""
        self.failed.add(topic_partition)
        self.partitions.pop(topic_partition, None)
        self.beside.append(self._note_disks())

    def mend_disks(self) -> None:
        """All log directories work again."""
        self.failed.clear()
        self.beside.append(self._note_disks())

    async def _note_disks(self) -> None:
        """Have the controller ask for all replicas."""
        with suppress(StoreUnreachable):  # it was written, and only the answer lost
            note = znodes.encode_log_dir_event(self.broker_id)
            await self.session.create(znodes.LOG_DIR_EVENT_PREFIX, note, sequential=True)

    def leads(self) -> list[PartitionState]:
        """The partitions whose leader it thinks it is."""
        return [each for each in self.partitions.values() if each.leader == self.broker_id]

    async def change_isr(self, state: PartitionState, isr: tuple[int, ...]) -> None:
        """As a leader: write another ISR by compare-and-set, and leave a note of it."""
        node = LeaderAndIsr(state.controller_epoch, self.broker_id, state.leader_epoch, isr)
        path = znodes.partition_state_path(state.topic, state.partition)
        try:
            version = await self.session.set(
                path, znodes.encode_partition_state(node), state.partition_epoch
            )
        except (BadVersion, NoNode):
            return
        except StoreUnreachable:
            version = state.partition_epoch + 1  # it was done, and only the answer lost
        known = self.partitions.get(state.topic_partition)
        if known is not None and (known.topic_id, known.leader_epoch) == (
            state.topic_id,
            state.leader_epoch,
        ):
            self.partitions[state.topic_partition] = known._replace(
                isr=isr, partition_epoch=version
            )
        note = znodes.encode_isr_change([state.topic_partition])
        with suppress(StoreUnreachable):
            await self.session.create(znodes.ISR_CHANGE_PREFIX, note, sequential=True)


def _partitions_of(request: ControllerRequest) -> list[TopicPartition]:
    if isinstance(request, StopReplica):
        return [stopped.topic_partition for stopped in request.partitions]
    return [state.topic_partition for state in request.partition_states]
