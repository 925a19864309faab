"""ListPartitionReassignments (46), version 0: what is on its way to other brokers (KIP-455).

Behaviour: the partitions named that are moving, or all that are where none is named. Any
broker takes it; the controller answers.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ..interbroker.forwarding import on_controller
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
@on_controller
async def handle_list_partition_reassignments(
    context: HandlerContext, request: Request[messages.ListPartitionReassignmentsRequest]
) -> messages.ListPartitionReassignmentsResponse:
    """Ask the controller."""
    body = request.body
    if not context.authorize(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    requested = None
    if body.topics is not None:
        requested = [
            TopicPartition(topic.name, partition)
            for topic in body.topics
            for partition in topic.partition_indexes
        ]
    moving = await context.controller.reassignments(requested, timeout_ms=body.timeout_ms)
    response = messages.ListPartitionReassignmentsResponse
    by_topic: dict[
        str, list[messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment]
    ] = {}
    for (topic, partition), (replicas, reassignment) in moving.items():
        by_topic.setdefault(topic, []).append(
            response.OngoingPartitionReassignment(
                partition_index=partition,
                replicas=list(replicas),
                adding_replicas=list(reassignment.adding),
                removing_replicas=list(reassignment.removing),
            )
        )
    return response(
        topics=[
            response.OngoingTopicReassignment(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ]
    )
