"""From the wish for more partitions of a topic to their assignment; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ..context import ControllerContext, Topic
from .assignment import Assignment, assign_more_partitions, validate_manual_assignment


class NewPartitions(NamedTuple):
    """How many partitions somebody wants a topic to have.

    Attributes:
        total_count: of all partitions, not of those to add.
        assignments: the brokers of each partition to add; None to have them assigned.
    """

    topic: str
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


def plan_partitions(wish: NewPartitions, topic: Topic, context: ControllerContext) -> Assignment:
    """Assign the partitions to add.

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
    if wish.total_count <= present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name!r} has {present} partitions already; {wish.total_count} would "
            "not be more.",
        )
    added_count = wish.total_count - present
    if wish.assignments is None:
        return assign_more_partitions(context.live_racks, topic.assignment, added_count)
    if len(wish.assignments) != added_count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added_count} partitions are to be added, and {len(wish.assignments)} were assigned.",
        )
    validate_manual_assignment(wish.assignments, context.live_brokers, len(topic.assignment[0]))
    return {present + offset: tuple(replicas) for offset, replicas in enumerate(wish.assignments)}
