"""The controller's shell: registration, elections, and one event after the other.

Every broker has one. It registers the broker, stands for election whenever there is no
controller, and drives an `ActiveController` while it is elected. What clients request is done
one at a time with the events, as on Kafka's controller thread; once begun, an event goes to
its end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random

from ..common.errors import ErrorCode, KafkaError
from ..common.live_broker import EndPoint, LiveBroker
from ..common.partition_state import LeaderAndIsr
from ..common.sentinels import FOREVER_MS
from ..common.topic_partition import TopicPartition
from ..config.broker_config import BrokerConfig
from ..metadata_store import znodes
from ..metadata_store.errors import MetadataStoreError, NoNode, SessionExpired
from ..metadata_store.store import MetadataStore, SessionState, Watch, WatchEvent, ensure_paths
from ..runtime import waiting
from ..runtime.clock import Clock
from ..runtime.long_work import Pace
from ..runtime.supervisor import Supervisor
from .active_controller import ActiveController
from .channel.channel import ControllerChannel
from .context import Reassignment
from .event_queue import OPERATION_TIMEOUT_MS, Event, EventQueue
from .feature_levels import FeatureUpdate, update_features
from .fenced_store import ControllerMoved
from .partitions.isr_proposals import IsrOutcome, IsrProposals
from .partitions.leader_elections import ElectionType, LeaderElections
from .producer_ids import ProducerIdManager
from .registration import BrokerIdTaken, register_when_free, stand_for_election
from .topics.planning import CreatedTopic, NewPartitions, TopicCreation
from .topics.topic_operations import Outcome, TopicOperations

logger = logging.getLogger(__name__)

STORE_RETRY_MS = 200
"""How long to wait before trying again a store that cannot be reached."""


class Controller:
    """Registers this broker, and does the controller's work while it is elected.

    Args:
        broker: this broker and where it is reached.
        store: an open session on the metadata store.
        channel: sends requests to brokers.
        random: for assignments and topic ids.
        supervisor: begins its tasks again that fail; one of its own if None.

    Attributes:
        broker_id: this broker's.
        broker_epoch: of its present registration; negative before the first.
        producer_ids: the producer ids this broker gives out, controller or not.
    """

    def __init__(
        self,
        *,
        broker: LiveBroker,
        store: MetadataStore,
        channel: ControllerChannel,
        config: BrokerConfig,
        clock: Clock,
        random: Random,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.broker_id = broker.broker_id
        self.broker_epoch = -1
        self.producer_ids = ProducerIdManager(broker.broker_id, store)
        self._broker = broker
        self._store = store
        self._channel = channel
        self._config = config
        self._clock = clock
        self._random = random
        self._active: ActiveController | None = None
        self._watches: list[Watch] = []
        """Those of the elected controller."""
        self._restarted = {broker.broker_id}
        """This broker, until a controller knows that it was started."""
        self._events = EventQueue()
        self._registered = waiting.new_event()
        self._supervisor = supervisor or Supervisor()
        self._stopping = False
        self._has_left = False

    @property
    def is_active(self) -> bool:
        """Whether this broker is the cluster's controller."""
        return self._active is not None

    @property
    def active(self) -> ActiveController:
        """The controller of this broker's election. Raises KafkaError: NOT_CONTROLLER."""
        if self._active is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return self._active

    # -- coming and going -------------------------------------------------------------

    async def start(self, endpoints: Sequence[EndPoint] | None = None) -> None:
        """Register the broker, stand for election, and take over if elected.

        Args:
            endpoints: where the broker is reached; None if it was made with them.

        Raises:
            BrokerIdTaken: another live broker has this one's id.
        """
        if endpoints is not None:
            self._broker = self._broker._replace(endpoints=tuple(endpoints))
        async with self._events.exclusive():
            await self._register()
            await self._run_event(self._stand)

    async def _register(self) -> None:
        await ensure_paths(self._store, znodes.PERSISTENT_PATHS)
        self._broker = await register_when_free(self._store, self._broker, self._clock)
        self.broker_epoch = self._broker.epoch
        self._registered.set()
        await self._watch(znodes.CONTROLLER, "election", self._stand)

    async def wait_until_registered(self) -> None:
        """Wait for the first registration of this process."""
        await self._registered.wait()

    async def _watch(self, path: str, kind: str, event: Event) -> Watch:
        def changed(_: WatchEvent) -> None:
            self._events.post_once(kind, event)

        return await self._store.watch(path, changed)

    async def _stand(self) -> None:
        """Take the controller's place if it is free; leave it if another broker has it."""
        if self._stopping or (self._has_left and not self.is_active):
            return
        standing = await stand_for_election(
            self._store,
            self.broker_id,
            is_controller=self.is_active,
            now_ms=self._clock.now_ms(),
        )
        if standing.is_controller and standing.election is None:
            return
        self._resign()
        if standing.election is None:
            self._restarted.clear()  # the controller there is finds out by the registration
            return
        self._active = active = ActiveController(
            self.broker_id,
            standing.election,
            store=self._store,
            channel=self._channel,
            config=self._config,
            random=self._random,
            post=self._events.post,
            keep_pace=Pace().keep,
        )
        for path, kind, event in (
            (znodes.BROKER_IDS, "brokers", ActiveController.brokers_changed),
            (znodes.TOPICS, "topics", ActiveController.topics_changed),
            (znodes.DELETE_TOPICS, "topics", ActiveController.topics_changed),
            (znodes.ISR_CHANGES, "isr", ActiveController.isr_changed),
            (znodes.LOG_DIR_EVENTS, "directories", ActiveController.directories_changed),
        ):
            self._watches.append(await self._watch(path, kind, self._if_active(event)))
        await active.failover(self._restarted)
        self._restarted.clear()

    def _resign(self) -> None:
        while self._watches:
            self._watches.pop().cancel()
        if self._active is not None:
            logger.info("broker %d resigned as controller", self.broker_id)
            self._active.resign()
            self._active = None

    async def deregister(self) -> None:
        """Leave the cluster before the session ends; this broker is not elected any more.

        If it is the controller, it goes on as one and tells the others that it is gone.

        Raises:
            KafkaError: REQUEST_TIMED_OUT.
            MetadataStoreError: the store could not be reached.
        """
        async with self._events.exclusive():
            self._has_left = True
            with suppress(NoNode):
                await self._store.delete(znodes.broker_path(self.broker_id))

    async def stop(self) -> None:
        """Let the running event come to its end, and begin no other.

        Registration and the controller's place go with the store's session.
        """
        self._stopping = True
        async with self._events.exclusive():
            self._resign()
        self._events.wake()

    # -- events -----------------------------------------------------------------------

    def _if_active(self, do: Callable[[ActiveController], Awaitable[None]]) -> Event:
        """An event for the active controller, dropped if this broker has resigned by then."""

        async def event() -> None:
            if self._active is not None:
                await do(self._active)

        return event

    async def log_directories_changed(self) -> None:
        """Notify the controller, wherever it is, that this broker lost a log directory, or may be
        able to use one again.

        It is tried until the store takes the note: nothing else would tell the controller.
        """
        while not self._stopping:
            try:
                await self._store.create(
                    znodes.LOG_DIR_EVENT_PREFIX,
                    znodes.encode_log_dir_event(self.broker_id),
                    sequential=True,
                )
                return
            except MetadataStoreError as error:
                logger.error("the change of a log directory could not be noted: %s", error)
            await waiting.sleep(STORE_RETRY_MS / 1000)

    def topic_config_changed(self, name: str, overrides: Mapping[str, str]) -> None:
        """A topic's settings changed; see `ActiveController.topic_config_changed`."""
        topic = None if self._active is None else self._active.context.any_topic(name)
        if topic is not None:
            topic.config = overrides
        self._events.post(self._if_active(lambda active: active.topic_config_changed(name)))

    def rebalance_leaders(self) -> None:
        """Give brokers the partitions back that they are preferred for; see `LeaderElections`."""
        rebalance = self._if_active(lambda active: LeaderElections(active).rebalance())
        self._events.post_once("rebalance", rebalance)

    async def run(self) -> None:
        """Do event after event, and begin anew whenever the store's session is lost."""
        async with waiting.open_nursery() as nursery:
            nursery.start_soon(self._supervisor.run, self._keep_session)
            await self._supervisor.run(self._run_events)
            nursery.cancel_scope.cancel()

    async def _run_events(self) -> None:
        while not self._stopping:
            await self._events.wait_for_event()
            async with self._events.exclusive(timeout_ms=FOREVER_MS):
                event = self._events.pop()
                if event is not None:
                    await self._run_event(event)
            self._events.notify_settled()

    async def _run_event(self, event: Event) -> None:
        """One event; what fails in it must not keep the next from being done."""
        try:
            await event()
        except ControllerMoved:
            self._resign()
            self._events.post_once("election", self._stand)
        except MetadataStoreError as error:
            logger.error("the controller could not reach the metadata store: %s", error)
            self._begin_anew()
        except Exception:
            logger.exception("an event of the controller failed")
            self._begin_anew()
        else:
            if self._active is not None and self._active.store.is_unsure:
                self._begin_anew()

    def _begin_anew(self) -> None:
        """What is known may not be what the store holds: stand again, and read everything.

        Another election, not only another look: what was sent in this one may still be on its
        way, and the next controller epoch is what has it refused (Kafka's
        triggerControllerMove).
        """
        if not self._stopping:
            self._resign()
            self._events.post_once("election", self._stand_later)

    async def _stand_later(self) -> None:
        await waiting.sleep(STORE_RETRY_MS / 1000)
        await self._stand()

    async def _keep_session(self) -> None:
        """Feed the session; where it expires, open another and register again."""
        while not self._stopping:
            await self._store.run()
            if self._stopping or self._store.session_state is SessionState.CLOSED:
                return
            logger.warning("the session with the metadata store expired: beginning another")
            async with self._events.exclusive(timeout_ms=FOREVER_MS):
                self._resign()
                self._events.clear()
                await self._begin_again()

    async def _begin_again(self) -> None:
        while not self._stopping:
            try:
                await self._store.open()
                await self._register()
                await self._run_event(self._stand)
                return
            except (MetadataStoreError, BrokerIdTaken) as error:
                logger.error("cannot register with the metadata store again: %s", error)
            await waiting.sleep(STORE_RETRY_MS / 1000)

    # -- what clients request -------------------------------------------------------

    @asynccontextmanager
    async def acting(
        self, timeout_ms: int = OPERATION_TIMEOUT_MS
    ) -> AsyncIterator[ActiveController]:
        """Act as the cluster's controller, with no event running meanwhile.

        Raises:
            KafkaError: REQUEST_TIMED_OUT or NOT_CONTROLLER, with nothing done.
        """
        async with self._events.exclusive(timeout_ms):
            active = self.active
            try:
                yield active
            except ControllerMoved:
                self._resign()
                self._events.post_once("election", self._stand)
                raise KafkaError(ErrorCode.NOT_CONTROLLER) from None
            except SessionExpired as error:
                self._resign()
                raise KafkaError(ErrorCode.NOT_CONTROLLER) from error
            except KafkaError:
                raise
            except Exception:
                self._begin_anew()
                raise
            finally:
                if active.store.is_unsure and active is self._active:
                    self._begin_anew()
        self._events.notify_settled()

    async def create_topics(
        self,
        requests: Sequence[TopicCreation],
        *,
        timeout_ms: int = OPERATION_TIMEOUT_MS,
        validate_only: bool = False,
    ) -> list[CreatedTopic]:
        """Make topics; see `TopicOperations.create`.

        Args:
            timeout_ms: how long to wait for the events before this one.

        Raises:
            KafkaError: none was made: REQUEST_TIMED_OUT, NOT_CONTROLLER or POLICY_VIOLATION.
        """
        async with self.acting(timeout_ms) as active:
            return await TopicOperations(active).create(requests, validate_only=validate_only)

    async def ensure_topics(self, names: Collection[str]) -> dict[str, KafkaError]:
        """Make those topics that are not there; see `TopicOperations.ensure`.

        Raises:
            KafkaError: none was made: REQUEST_TIMED_OUT, NOT_CONTROLLER or POLICY_VIOLATION.
        """
        async with self.acting() as active:
            return await TopicOperations(active).ensure(names)

    async def delete_topics(
        self, topic_ids: Collection[bytes], *, timeout_ms: int = OPERATION_TIMEOUT_MS
    ) -> dict[bytes, Outcome]:
        """Delete topics, and answer once their logs are gone, if all of their brokers are here.

        Raises:
            KafkaError: none was deleted: REQUEST_TIMED_OUT or NOT_CONTROLLER.
        """
        async with self.acting(timeout_ms) as active:
            names = [
                topic.name
                for topic_id in topic_ids
                if (topic := active.context.topic_by_id(topic_id)) is not None
            ]
            outcomes = await TopicOperations(active).delete(topic_ids)
        going = deque(names)
        with waiting.move_on_after(timeout_ms / 1000):
            while self._active is active:
                while going and not self._is_going(active, going[0]):
                    going.popleft()
                if not going:
                    break
                await self._events.wait_until_settled()
        return outcomes

    def _is_going(self, active: ActiveController, name: str) -> bool:
        """Whether brokers have yet to say that a topic's logs are gone."""
        topic = active.context.any_topic(name)
        return topic is not None and topic.is_being_deleted and not topic.deletion_waits

    async def create_partitions(
        self,
        requests: Sequence[NewPartitions],
        *,
        timeout_ms: int = OPERATION_TIMEOUT_MS,
        validate_only: bool = False,
    ) -> dict[str, Outcome]:
        """Add partitions to topics; see `TopicOperations.add_partitions`.

        Raises:
            KafkaError: nothing was added: REQUEST_TIMED_OUT, NOT_CONTROLLER or
                POLICY_VIOLATION.
        """
        async with self.acting(timeout_ms) as active:
            operations = TopicOperations(active)
            return await operations.add_partitions(requests, validate_only=validate_only)

    async def elect_leaders(
        self,
        kind: ElectionType,
        partitions: Collection[TopicPartition] | None,
        *,
        timeout_ms: int = OPERATION_TIMEOUT_MS,
    ) -> dict[TopicPartition, Outcome]:
        """Elect leaders; see `LeaderElections.elect`. Raises KafkaError as the others."""
        async with self.acting(timeout_ms) as active:
            return await LeaderElections(active).elect(kind, partitions)

    async def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        may_change_factor: bool = True,
        timeout_ms: int = OPERATION_TIMEOUT_MS,
    ) -> dict[TopicPartition, Outcome]:
        """Move partitions; see `LeaderElections.reassign`. Raises KafkaError as the others."""
        async with self.acting(timeout_ms) as active:
            return await LeaderElections(active).reassign(
                targets, may_change_factor=may_change_factor
            )

    async def reassignments(
        self, partitions: Collection[TopicPartition] | None
    ) -> dict[TopicPartition, tuple[tuple[int, ...], Reassignment]]:
        """What is moving; see `LeaderElections.reassignments`. Raises KafkaError as the others."""
        async with self.acting() as active:
            return await LeaderElections(active).reassignments(partitions)

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool, timeout_ms: int
    ) -> None:
        """Move finalized levels; see `feature_levels`. Raises KafkaError as the others."""
        async with self.acting(timeout_ms) as active:
            brokers = active.context.live_brokers
            await update_features(
                active.store, self._broker.broker_id, brokers, updates, validate_only=validate_only
            )

    async def propose_isrs(
        self, broker_id: int, broker_epoch: int, proposals: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, IsrOutcome]:
        """Write the ISRs that a leader proposes; see `IsrProposals`.

        Raises:
            KafkaError: STALE_BROKER_EPOCH, and as the others.
        """
        async with self.acting() as active:
            return await IsrProposals(active, broker_id, broker_epoch).write(proposals)

    async def shut_down_broker(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move a broker's partitions away; see `LeaderElections.shut_down`."""
        async with self.acting() as active:
            return await LeaderElections(active).shut_down(broker_id, broker_epoch)
