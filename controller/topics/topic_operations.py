"""What an elected controller does to topics: create, add partitions, delete."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from ...common.error_texts import default_error
from ...common.errors import ErrorCode, KafkaError
from ...config.topic_configs import validate_topic_config
from ...metadata_store.errors import MetadataStoreError, NodeExists
from ...runtime.long_work import run_at_pace
from ...runtime.steps import Steps, map_in_steps
from ..active_controller import ActiveController
from ..context import Topic
from ..fenced_store import kafka_error_of
from ..settings import topic_for_first_use
from .assignment import Assignment
from .planning import (
    CreatedTopic,
    NewPartitions,
    TopicCreation,
    TopicDefaults,
    TopicPlan,
    check_partition_limit,
    plan_partitions,
    plan_topic,
    require_partition_limit,
    topic_exists,
)
from .topic_nodes import create_topic_operations, write_assignment

logger = logging.getLogger(__name__)

Outcome = KafkaError | None
"""How one item of a request fared; None is success."""


class TopicOperations:
    """What an elected controller does to topics.

    Every verb returns once the store holds the change; brokers may take a moment more to
    follow it.
    """

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller
        self._context = controller.context
        self._defaults = TopicDefaults(
            controller.config["num.partitions"], controller.config["default.replication.factor"]
        )

    # -- making ---------------------------------------------------------------------------

    async def create(
        self, requests: Sequence[TopicCreation], *, validate_only: bool = False
    ) -> list[CreatedTopic]:
        """Make topics.

        Args:
            requests: each of another name.
            validate_only: plan, and make nothing.

        Returns:
            One outcome for each request, in their order.

        Raises:
            KafkaError: POLICY_VIOLATION, none was made.
        """
        planned = await run_at_pace(self._plan_all(requests), self._controller.keep_pace)
        return planned if validate_only else await self._make_all(planned)

    def _plan_all(self, requests: Sequence[TopicCreation]) -> Steps[list[CreatedTopic]]:
        """What `create` would make; it yields after each partition."""
        check_partition_limit(requests, self._defaults)
        planned: list[CreatedTopic] = []
        for request in requests:
            planned.append((yield from self._plan(request)))
            yield
        return planned

    def _plan(self, request: TopicCreation) -> Steps[CreatedTopic]:
        try:
            plan = yield from plan_topic(
                request,
                self._context,
                self._defaults,
                self._validate_config,
                self._controller.random,
            )
        except KafkaError as refusal:
            return CreatedTopic(request.name, None, refusal.as_value())
        return CreatedTopic(request.name, plan)

    def _validate_config(self, overrides: Mapping[str, str]) -> None:
        validate_topic_config(overrides, self._controller.config)

    async def _make_all(self, planned: Sequence[CreatedTopic]) -> list[CreatedTopic]:
        """Write each topic that was planned, then lead all of their partitions together."""
        outcomes: list[CreatedTopic] = []
        made: list[Topic] = []
        for outcome in planned:
            await self._controller.keep_pace()
            if outcome.plan is not None:
                try:
                    made.append(await self._make(outcome.plan))
                except NodeExists:
                    outcome = CreatedTopic(outcome.name, None, topic_exists(outcome.name))
                except MetadataStoreError as error:
                    outcome = CreatedTopic(outcome.name, None, kafka_error_of(error))
            outcomes.append(outcome)
        await self._controller.lead_new([(topic, topic.assignment) for topic in made])
        return outcomes

    async def _make(self, plan: TopicPlan) -> Topic:
        topic = Topic(plan.name, plan.topic_id, plan.assignment, plan.config)
        await self._controller.store.multi(create_topic_operations(topic))
        self._context.add_topic(topic)
        logger.info("made topic %s with %d partitions", topic.name, len(topic.assignment))
        return topic

    async def ensure(self, names: Collection[str]) -> dict[str, KafkaError]:
        """Make those topics that are not there, as they are made when first used.

        Kafka's own topics get their own configuration, others the broker's defaults.

        Args:
            names: each once.

        Returns:
            Why, for those that cannot be made.

        Raises:
            KafkaError: POLICY_VIOLATION, none was made.
        """
        broker_count = len(self._context.live_broker_ids)
        requests = [
            topic_for_first_use(name, self._controller.config, broker_count)
            for name in names
            if self._context.topic(name) is None
        ]
        outcomes = await self.create(requests)
        return {outcome.name: outcome.error for outcome in outcomes if outcome.error is not None}

    # -- deleting -------------------------------------------------------------------------

    async def delete(self, topic_ids: Collection[bytes]) -> dict[bytes, Outcome]:
        """Mark topics for deletion, and begin it.

        Args:
            topic_ids: each once.
        """
        outcomes: dict[bytes, Outcome] = {}
        topics: list[Topic] = []
        for topic_id in topic_ids:
            topic = self._context.topic_by_id(topic_id)
            if topic is None:
                outcomes[topic_id] = default_error(ErrorCode.UNKNOWN_TOPIC_ID)
                continue
            try:
                await self._controller.deletion.mark(topic)
            except MetadataStoreError as error:
                outcomes[topic_id] = kafka_error_of(error)
            else:
                outcomes[topic_id] = None
                topics.append(topic)
        await self._controller.deletion.begin(topics)
        return outcomes

    # -- growing --------------------------------------------------------------------------

    async def add_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> dict[str, Outcome]:
        """Add partitions to topics.

        Args:
            requests: each for another topic.

        Returns:
            The outcome by topic.

        Raises:
            KafkaError: POLICY_VIOLATION, nothing was added.
        """
        keep_pace = self._controller.keep_pace
        await run_at_pace(self._check_added(requests), keep_pace)
        outcomes: dict[str, Outcome] = {}
        for request in requests:
            await keep_pace()
            outcomes[request.topic] = None
            try:
                topic = self.existing(request.topic)
                added = await run_at_pace(plan_partitions(request, topic, self._context), keep_pace)
                if not validate_only:
                    await self._add(topic, added)
            except (KafkaError, MetadataStoreError) as error:
                outcomes[request.topic] = kafka_error_of(error)
        return outcomes

    def _check_added(self, requests: Sequence[NewPartitions]) -> Steps[None]:
        """Refuse what would add too many partitions; it yields after each topic."""
        counts = yield from map_in_steps(self._added_count, requests)
        require_partition_limit(sum(counts))

    def _added_count(self, request: NewPartitions) -> int:
        topic = self._context.topic(request.topic)
        return 0 if topic is None else max(request.total_count - len(topic.assignment), 0)

    def existing(self, name: str) -> Topic:
        """The topic of a name. Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION."""
        topic = self._context.topic(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        return topic

    async def _add(self, topic: Topic, added: Assignment) -> None:
        former = topic.assignment
        topic.assignment = {**former, **added}
        try:
            await write_assignment(self._controller.store, topic)
        except BaseException:
            topic.assignment = former
            raise
        await self._controller.lead_new([(topic, added)])
