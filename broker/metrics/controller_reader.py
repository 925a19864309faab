"""The controller's metrics: zero on every other broker, so that sums over brokers are right."""

from __future__ import annotations

from collections.abc import Iterator

from ...common.errors import KafkaError
from ...controller.context import ControllerContext, Topic
from ...controller.partitions.states import PartitionStatus
from .metric import Sample
from .source import MetricsSource

_CONTROLLER = "kafka_controller_kafkacontroller_"


def controller_samples(source: MetricsSource) -> Iterator[Sample]:
    """What the controller sees of the cluster, if this broker is it."""
    try:
        context = source.context.controller.active.context
    except KafkaError:
        context = ControllerContext()  # NOT_CONTROLLER: an empty cluster, all zeros
    topics = [topic for topic in context.topics() if not topic.is_being_deleted]
    yield _CONTROLLER + "activecontrollercount", (), source.context.controller.is_active
    yield _CONTROLLER + "activebrokercount", (), len(context.live_brokers)
    yield _CONTROLLER + "globaltopiccount", (), len(topics)
    yield _CONTROLLER + "globalpartitioncount", (), sum(len(each.assignment) for each in topics)
    yield (
        _CONTROLLER + "offlinepartitionscount",
        (),
        sum(
            status is PartitionStatus.OFFLINE
            for topic in topics
            for status in topic.statuses.values()
        ),
    )
    yield (
        _CONTROLLER + "preferredreplicaimbalancecount",
        (),
        sum(map(imbalanced_partitions, topics)),
    )


def imbalanced_partitions(topic: Topic) -> int:
    """How many partitions of a topic are not led by the first of their replicas.

    One that is on its way to others counts only once its first replica is in sync (Kafka's
    ControllerContext.hasPreferredLeader).
    """
    count = 0
    for partition, state in topic.leaderships.items():
        replicas = topic.assignment.get(partition)
        if not replicas or state.leader == replicas[0]:
            continue
        reassignment = topic.reassignments.get(partition)
        is_coming = reassignment is not None and replicas[0] in reassignment.adding
        if not is_coming or replicas[0] in state.isr:
            count += 1
    return count
