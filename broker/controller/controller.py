"""The controller: one broker's verbs on topics, done in the store and told to the replicas.

This is the shell: it asks the plain functions beside it what to do, writes that to the
metadata store, and only then changes what it knows and tells the brokers. One operation
runs at a time, as events do on Kafka's controller thread, and once begun goes to its end.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random

from ...protocol.errors import ErrorCode, KafkaError
from ...replication.internal_topics import INTERNAL_TOPICS
from ...replication.partition_state import PartitionState
from ...runtime.clock import Clock
from ..config.broker_config import BrokerConfig
from ..config.topic_configs import validate_topic_config
from ..metadata_store import znodes
from ..metadata_store.errors import (
    MetadataStoreError,
    NodeExists,
    NoNode,
    SessionExpired,
    StoreUnreachable,
)
from ..metadata_store.store import MetadataStore, ensure_paths
from .assignment import Assignment
from .broadcast import Broadcast
from .channel import ControllerChannel
from .config_changes import ConfigAlteration, alter_config
from .context import ControllerContext, Topic
from .live_broker import LiveBroker
from .new_partitions import NewPartitions, plan_partitions
from .new_topic import (
    CreatedTopic,
    NewTopic,
    TopicDefaults,
    TopicPlan,
    check_partition_limit,
    plan_topic,
    require_partition_limit,
    topic_exists,
)
from .partition_leaders import PartitionLeaders
from .producer_ids import ProducerIds
from .registration import read_live_brokers, register_broker, try_to_become_controller
from .settings import internal_topic
from .topic_deletion import TopicDeletion
from .topic_names import validate_topic_name
from .topic_nodes import (
    create_topic_operations,
    read_topics,
    set_assignment_operation,
)
from .turn import TURN_TIMEOUT_MS, Turn

logger = logging.getLogger(__name__)

Outcome = KafkaError | None
"""How one item of a request fared; None is success."""


class Controller:
    """Registers this broker, and does the controller's work when it is elected.

    Args:
        broker: this broker and where it is reached.
        store: an open session on the metadata store.
        channel: how brokers are told.
        random: for assignments and topic ids.

    Attributes:
        is_active: whether this broker is the cluster's controller.
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
    ) -> None:
        self.broker_id = broker.broker_id
        self.is_active = False
        self.context = ControllerContext()
        self.producer_ids = ProducerIds(broker.broker_id, store)
        self._broker = broker
        self._store = store
        self._config = config
        self._clock = clock
        self._random = random
        self._broadcast = Broadcast(broker.broker_id, self.context, channel)
        self._leaders = PartitionLeaders(self.context, store)
        self._deletion = TopicDeletion(self.context, store, self._broadcast)
        self._turn = Turn()
        self._defaults = TopicDefaults(
            config["num.partitions"], config["default.replication.factor"]
        )

    # -- coming and going -------------------------------------------------------------

    async def start(self) -> None:
        """Register the broker, stand for election, and take over if elected.

        Raises:
            BrokerIdTaken: another live broker has this one's id.
        """
        await ensure_paths(self._store, znodes.PERSISTENT_PATHS)
        self._broker = await register_broker(self._store, self._broker, self._clock.now_ms())
        epoch = await try_to_become_controller(self._store, self.broker_id, self._clock.now_ms())
        if epoch is not None:
            self.context.epoch = epoch
            await self._take_over()

    async def _take_over(self) -> None:
        """Learn what the store holds, finish what a crash cut off, and tell the brokers.

        After KafkaController.onControllerFailover. This broker registered just now, so the
        partitions it led before are led anew, in the next leader epoch.
        """
        context = self.context
        context.live_brokers = await read_live_brokers(self._store)
        for topic in await read_topics(self._store):
            context.add_topic(topic)
        self.is_active = True
        wanted = [topic for topic in context.topics() if not topic.is_being_deleted]
        await self._leaders.elect(wanted, restarted={self.broker_id})
        await self._leaders.lead_unled(wanted)
        states = [
            topic.partition_state(partition)
            for topic in wanted
            for partition in topic.assignment
            if partition in topic.leaderships
        ]
        logger.info(
            "broker %d is the controller of epoch %d, of %d topics and %d partitions",
            self.broker_id,
            context.epoch,
            len(wanted),
            len(states),
        )
        await self._broadcast.tell(states)
        await self._deletion.finish()

    async def stop(self) -> None:
        """Let the operation that runs come to its end, and take no more.

        Registration and the controller's place go with the store's session.
        """
        async with self._turn.take():
            self.is_active = False

    @asynccontextmanager
    async def _turn_as_controller(self, timeout_ms: int = TURN_TIMEOUT_MS) -> AsyncIterator[None]:
        """Wait for a turn to act as the cluster's controller.

        Raises:
            KafkaError: REQUEST_TIMED_OUT or NOT_CONTROLLER, with nothing done.
        """
        async with self._turn.take(timeout_ms):
            if not self.is_active:
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            yield

    # -- topics -----------------------------------------------------------------------

    async def create_topics(
        self,
        wishes: Sequence[NewTopic],
        *,
        timeout_ms: int = TURN_TIMEOUT_MS,
        validate_only: bool = False,
    ) -> list[CreatedTopic]:
        """Make topics, and answer once this cluster's brokers lead and know them.

        Args:
            wishes: each of another name.
            timeout_ms: how long to wait for operations before this one.
            validate_only: plan, and make nothing.

        Returns:
            One outcome for each wish, in their order.

        Raises:
            KafkaError: none was made: REQUEST_TIMED_OUT, NOT_CONTROLLER or POLICY_VIOLATION.
        """
        async with self._turn_as_controller(timeout_ms):
            check_partition_limit(wishes, self._defaults)
            outcomes = [self._plan(wish) for wish in wishes]
            if not validate_only:
                outcomes = await self._make_topics(outcomes)
        return outcomes

    def _plan(self, wish: NewTopic) -> CreatedTopic:
        try:
            plan = plan_topic(
                wish, self.context, self._defaults, self._validate_config, self._random
            )
        except KafkaError as refusal:
            return CreatedTopic(wish.name, None, refusal)
        return CreatedTopic(wish.name, plan)

    def _validate_config(self, overrides: Mapping[str, str]) -> None:
        validate_topic_config(overrides, self._config)

    async def _make_topics(self, planned: Sequence[CreatedTopic]) -> list[CreatedTopic]:
        outcomes: list[CreatedTopic] = []
        states: list[PartitionState] = []
        for outcome in planned:
            if outcome.plan is not None:
                try:
                    states += await self._make_topic(outcome.plan)
                except NodeExists:
                    outcome = CreatedTopic(outcome.name, None, topic_exists(outcome.name))
                except MetadataStoreError as error:
                    outcome = CreatedTopic(outcome.name, None, _store_failure(error))
            outcomes.append(outcome)
        if states:
            await self._broadcast.tell(states)
        return outcomes

    async def _make_topic(self, plan: TopicPlan) -> list[PartitionState]:
        topic = Topic(plan.name, plan.topic_id, plan.assignment, plan.config)
        operations = create_topic_operations(topic)
        states = await self._leaders.lead_new(topic, plan.assignment, operations)
        self.context.add_topic(topic)
        logger.info("made topic %s with %d partitions", topic.name, len(topic.assignment))
        return states

    async def ensure_topic(self, name: str) -> None:
        """Make a topic as `ensure_topics` does.

        Raises:
            KafkaError: it cannot be made.
        """
        for refusal in (await self.ensure_topics([name])).values():
            raise refusal

    async def ensure_topics(self, names: Collection[str]) -> dict[str, KafkaError]:
        """Make those topics that are not there, as they are made when first used.

        Kafka's own topics get their own configuration, others the broker's defaults. Of
        calls for one topic at the same time, the first makes it and the others wait.

        Args:
            names: each once.

        Returns:
            Why, for those that cannot be made.

        Raises:
            KafkaError: none was made: REQUEST_TIMED_OUT, NOT_CONTROLLER or POLICY_VIOLATION.
        """
        async with self._turn_as_controller():
            missing = [name for name in names if self.context.topic(name) is None]
            wishes = [self._wish_for(name) for name in missing]
            check_partition_limit(wishes, self._defaults)
            outcomes = await self._make_topics([self._plan(wish) for wish in wishes])
        return {outcome.name: outcome.error for outcome in outcomes if outcome.error is not None}

    def _wish_for(self, name: str) -> NewTopic:
        if name not in INTERNAL_TOPICS:
            return NewTopic(name)
        made = internal_topic(name, self._config).fitted_to(len(self.context.live_brokers))
        return NewTopic(
            name,
            made.partition_count,
            made.replication_factor,
            configs=tuple(made.config.items()),
        )

    async def delete_topics(
        self, topic_ids: Collection[bytes], *, timeout_ms: int = TURN_TIMEOUT_MS
    ) -> dict[bytes, Outcome]:
        """Delete topics, and answer once their logs are gone here.

        Args:
            topic_ids: each once.

        Raises:
            KafkaError: none was deleted: REQUEST_TIMED_OUT or NOT_CONTROLLER.
        """
        outcomes: dict[bytes, Outcome] = {}
        topics: list[Topic] = []
        async with self._turn_as_controller(timeout_ms):
            for topic_id in topic_ids:
                topic = self.context.topic_by_id(topic_id)
                if topic is None:
                    outcomes[topic_id] = KafkaError(
                        ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic of this id."
                    )
                    continue
                try:
                    await self._deletion.mark(topic)
                except MetadataStoreError as error:
                    outcomes[topic_id] = _store_failure(error)
                else:
                    outcomes[topic_id] = None
                    topics.append(topic)
            for topic in await self._deletion.delete(topics):
                outcomes[topic.topic_id] = KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"Not all replicas of topic {topic.name!r} could delete their logs; its "
                    "deletion will go on.",
                )
        return outcomes

    async def create_partitions(
        self,
        wishes: Sequence[NewPartitions],
        *,
        timeout_ms: int = TURN_TIMEOUT_MS,
        validate_only: bool = False,
    ) -> dict[str, Outcome]:
        """Add partitions to topics, and answer once they are led and known.

        Args:
            wishes: each for another topic.

        Returns:
            The outcome by topic.

        Raises:
            KafkaError: nothing was added: REQUEST_TIMED_OUT, NOT_CONTROLLER or
                POLICY_VIOLATION.
        """
        outcomes: dict[str, Outcome] = {}
        states: list[PartitionState] = []
        async with self._turn_as_controller(timeout_ms):
            require_partition_limit(sum(self._added_count(wish) for wish in wishes))
            for wish in wishes:
                outcomes[wish.topic] = None
                try:
                    topic = self._existing_topic(wish.topic)
                    added = plan_partitions(wish, topic, self.context)
                    if not validate_only:
                        states += await self._add_partitions(topic, added)
                except KafkaError as refusal:
                    outcomes[wish.topic] = refusal
                except MetadataStoreError as error:
                    outcomes[wish.topic] = _store_failure(error)
            if states:
                await self._broadcast.tell(states)
        return outcomes

    def _added_count(self, wish: NewPartitions) -> int:
        topic = self.context.topic(wish.topic)
        return 0 if topic is None else max(wish.total_count - len(topic.assignment), 0)

    def _existing_topic(self, name: str) -> Topic:
        topic = self.context.topic(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        return topic

    async def _add_partitions(self, topic: Topic, added: Assignment) -> list[PartitionState]:
        former = topic.assignment
        topic.assignment = {**former, **added}
        operation = set_assignment_operation(topic)
        try:
            states = await self._leaders.lead_new(topic, added, [operation])
        except MetadataStoreError:
            topic.assignment = former
            raise
        topic.version += 1
        return states

    # -- configuration ----------------------------------------------------------------

    async def alter_topic_configs(
        self,
        alterations: Mapping[str, Sequence[ConfigAlteration]],
        *,
        replace: bool = False,
        validate_only: bool = False,
    ) -> dict[str, Outcome]:
        """Change topics' overrides; the brokers' logs follow before this answers.

        Args:
            alterations: by topic.
            replace: begin from no overrides instead of the present ones.

        Returns:
            The outcome by topic.

        Raises:
            KafkaError: nothing was changed: REQUEST_TIMED_OUT or NOT_CONTROLLER.
        """
        outcomes: dict[str, Outcome] = {}
        async with self._turn_as_controller():
            for name, changes in alterations.items():
                outcomes[name] = None
                try:
                    await self._alter_topic_config(name, changes, replace, validate_only)
                except KafkaError as refusal:
                    outcomes[name] = refusal
                except MetadataStoreError as error:
                    outcomes[name] = _store_failure(error)
        return outcomes

    async def _alter_topic_config(
        self, name: str, changes: Sequence[ConfigAlteration], replace: bool, validate_only: bool
    ) -> None:
        validate_topic_name(name)
        present = self.context.topic(name)
        current = {} if present is None or replace else present.config
        altered = alter_config(current, changes, self._config)
        topic = self._existing_topic(name)
        if validate_only or altered == topic.config:
            return
        path = znodes.topic_config_path(name)
        data = znodes.encode_topic_config(altered)
        try:
            await self._store.set(path, data)
        except NoNode:
            await self._store.create(path, data)
        topic.config = altered
        await self._broadcast.tell_config(name, altered)


def _store_failure(error: MetadataStoreError) -> KafkaError:
    """What a client is told when the metadata store did not do its part."""
    logger.error("the metadata store refused: %s", error)
    if isinstance(error, SessionExpired | StoreUnreachable):
        return KafkaError(ErrorCode.NOT_CONTROLLER, "This broker lost the metadata store.")
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata store refused: {error}.")
