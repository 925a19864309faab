"""ListPartitionReassignments (46), version 0: what is on its way to other brokers (KIP-455).

Behaviour: the partitions named that are moving, or all that are where none is named. Any
broker takes it; the controller answers. The request's time-out is ignored, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import Steps
from ..interbroker.forwarding import on_controller
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
@partial(on_controller, heeds_timeout=False)
async def handle_list_partition_reassignments(
    context: HandlerContext, request: Request[messages.ListPartitionReassignmentsRequest]
) -> messages.ListPartitionReassignmentsResponse:
    """Ask the controller."""
    body = request.body
    if not context.authorize(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    requested = None
    if body.topics is not None:
        requested = await run_in_steps(_requested(body.topics))
    moving = await context.controller.reassignments(requested)
    response = messages.ListPartitionReassignmentsResponse
    by_topic: dict[str, messages.ListPartitionReassignmentsResponse.OngoingTopicReassignment] = {}
    pace = Pace()
    for (topic, partition), (replicas, reassignment) in moving.items():
        await pace.keep()
        if topic not in by_topic:
            by_topic[topic] = response.OngoingTopicReassignment(name=topic)
        by_topic[topic].partitions.append(
            response.OngoingPartitionReassignment(
                partition_index=partition,
                replicas=list(replicas),
                adding_replicas=list(reassignment.adding),
                removing_replicas=list(reassignment.removing),
            )
        )
    return response(topics=list(by_topic.values()))


def _requested(
    topics: Sequence[messages.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics],
) -> Steps[list[TopicPartition]]:
    """The partitions named, each once."""
    requested: dict[TopicPartition, None] = {}
    for topic in topics:
        for partition in topic.partition_indexes:
            requested[TopicPartition(topic.name, partition)] = None
            yield
    return list(requested)
