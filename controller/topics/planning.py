"""What a requested topic, or requested partitions, will be: validation and assignment, no writing.

The order of checks, and so which error a request with several faults gets, is that of Kafka's
ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...runtime.rng import random_uuid
from ...runtime.steps import Steps
from ..context import ControllerContext, Topic
from .assignment import (
    Assignment,
    assign_more_partitions,
    assign_new_topic,
    validate_manual_assignment,
)
from .topic_names import validate_topic_name

USE_DEFAULT = -1
"""A partition count or replication factor that leaves it to the broker's configuration."""

PARTITIONS_PER_REQUEST_MAX = 10_000
"""How many partitions one request may make, over all of its topics (KRaft's limit)."""

ConfigValidator = Callable[[Mapping[str, str]], None]
"""Raises KafkaError INVALID_CONFIG for overrides that a topic cannot have."""


class TopicCreation(NamedTuple):
    """A topic to make.

    Attributes:
        assignments: partition index and brokers, one pair for each partition; empty to have
            the controller assign.
        configs: overrides; a value of None is refused.
    """

    name: str
    partition_count: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class TopicPlan(NamedTuple):
    """A topic that can be made."""

    name: str
    topic_id: bytes
    assignment: Assignment
    config: Mapping[str, str]

    @property
    def replication_factor(self) -> int:
        """Of the first partition, as Kafka reports it."""
        return len(self.assignment[0])


class CreatedTopic(NamedTuple):
    """How one topic of a request fared: the plan, or why there is none."""

    name: str
    plan: TopicPlan | None
    error: KafkaError | None = None


class TopicDefaults(NamedTuple):
    """What a request leaves open: `num.partitions` and `default.replication.factor`."""

    partition_count: int
    replication_factor: int


def plan_topic(
    request: TopicCreation,
    context: ControllerContext,
    defaults: TopicDefaults,
    validate_config: ConfigValidator,
    random: Random,
) -> Steps[TopicPlan]:
    """Decide what the topic will be; it yields after each partition.

    Raises:
        KafkaError: the topic cannot be made, with Kafka's code for it.
    """
    validate_topic_name(request.name)
    other = context.colliding_topic(request.name)
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{request.name}' collides with existing topic: {other}",
        )
    if context.has_name(request.name):
        raise topic_exists(request.name)
    config = _plan_config(request, validate_config)
    assignment = yield from _plan_assignment(request, context, defaults, random)
    return TopicPlan(request.name, random_uuid(random), assignment, config)


def topic_exists(name: str) -> KafkaError:
    """TOPIC_ALREADY_EXISTS for a topic."""
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _plan_config(request: TopicCreation, validate_config: ConfigValidator) -> dict[str, str]:
    without = [name for name, value in request.configs if value is None]
    if without:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(without)}",
        )
    # Of a name that stands twice, the last one counts.
    config = {name: value for name, value in request.configs if value is not None}
    validate_config(config)
    return config


def _plan_assignment(
    request: TopicCreation, context: ControllerContext, defaults: TopicDefaults, random: Random
) -> Steps[Assignment]:
    if request.assignments:
        return (yield from _accept_assignment(request, context))
    factor = request.replication_factor
    count = request.partition_count
    if factor == 0 or factor < USE_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count == 0 or count < USE_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    return (
        yield from assign_new_topic(
            context.live_racks,
            defaults.partition_count if count == USE_DEFAULT else count,
            defaults.replication_factor if factor == USE_DEFAULT else factor,
            random,
        )
    )


def _accept_assignment(request: TopicCreation, context: ControllerContext) -> Steps[Assignment]:
    given = {
        "replication factor": request.replication_factor,
        "numPartitions": request.partition_count,
    }
    for name, value in given.items():
        if value != USE_DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    assignment: Assignment = {}
    for partition, replicas in request.assignments:
        yield
        if partition in assignment:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {partition}",
            )
        assignment[partition] = tuple(replicas)
    yield from validate_manual_assignment(assignment.values(), context.live_brokers)
    if sorted(assignment) != list(range(len(assignment))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return dict(sorted(assignment.items()))


class NewPartitions(NamedTuple):
    """How many partitions a topic is to have.

    Attributes:
        total_count: of all partitions, not of those to add.
        assignments: the brokers of each partition to add; None to have them assigned.
    """

    topic: str
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


def plan_partitions(
    request: NewPartitions, topic: Topic, context: ControllerContext
) -> Steps[Assignment]:
    """Assign the partitions to add; it yields after each.

    Raises:
        KafkaError: INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT,
            INVALID_REPLICATION_FACTOR or REASSIGNMENT_IN_PROGRESS.
    """
    present = len(topic.assignment)
    if topic.is_reassigning:
        raise KafkaError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"Partitions of topic {topic.name!r} are on their way to other brokers.",
        )
    if request.total_count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if request.total_count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {request.total_count} "
            "would not be an increase.",
        )
    added_count = request.total_count - present
    if request.assignments is None:
        return (
            yield from assign_more_partitions(context.live_racks, topic.assignment, added_count)
        )
    if len(request.assignments) != added_count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added_count} additional partition(s), but only "
            f"{len(request.assignments)} assignment(s) were specified.",
        )
    factor = len(topic.assignment[0])
    yield from validate_manual_assignment(request.assignments, context.live_brokers, factor)
    return {
        present + offset: tuple(replicas) for offset, replicas in enumerate(request.assignments)
    }


def check_partition_limit(requests: Sequence[TopicCreation], defaults: TopicDefaults) -> None:
    """Refuse a request that would make too many partitions at once.

    Raises:
        KafkaError: POLICY_VIOLATION.
    """
    total = 0
    for request in requests:
        if request.assignments:
            total += len(request.assignments)
        elif request.partition_count == USE_DEFAULT:
            total += defaults.partition_count
        else:
            total += max(request.partition_count, 0)
    require_partition_limit(total)


def require_partition_limit(total: int) -> None:
    """Refuse more than `PARTITIONS_PER_REQUEST_MAX` partitions.

    Raises:
        KafkaError: POLICY_VIOLATION.
    """
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        )
