"""AlterPartitionReassignments (45), versions 0-1: move partitions to other brokers (KIP-455).

Behaviour: each partition fares on its own: INVALID_REPLICA_ASSIGNMENT for a target that
cannot be, NO_REASSIGNMENT_IN_PROGRESS for one to cancel (replicas null) that is not moving,
UNKNOWN_TOPIC_OR_PARTITION. Answered once the reassignment has begun. Any broker takes it; the
controller does it.
Version notes: 1 may forbid that the number of replicas changes
(INVALID_REPLICATION_FACTOR, KIP-860).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps
from ..interbroker.forwarding import on_controller
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
@on_controller
async def handle_alter_partition_reassignments(
    context: HandlerContext, request: Request[messages.AlterPartitionReassignmentsRequest]
) -> messages.AlterPartitionReassignmentsResponse:
    """Have the controller move partitions."""
    body = request.body
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    targets = await run_in_steps(_targets(body))
    outcomes = await context.controller.reassign(
        targets,
        may_change_factor=body.allow_replication_factor_change,
        timeout_ms=body.timeout_ms,
    )
    return await run_in_steps(_response(body, outcomes))


def _targets(
    body: messages.AlterPartitionReassignmentsRequest,
) -> Steps[dict[TopicPartition, Sequence[int] | None]]:
    targets: dict[TopicPartition, Sequence[int] | None] = {}
    for topic in body.topics:
        for partition in topic.partitions:
            targets[TopicPartition(topic.name, partition.partition_index)] = partition.replicas
            yield
    return targets


def _response(
    body: messages.AlterPartitionReassignmentsRequest,
    outcomes: Mapping[TopicPartition, KafkaError | None],
) -> Steps[messages.AlterPartitionReassignmentsResponse]:
    response = messages.AlterPartitionReassignmentsResponse
    answer = response(
        error_message=None if body.topics else "",  # as Kafka, where nothing is requested
        allow_replication_factor_change=body.allow_replication_factor_change,
    )
    for topic in body.topics:
        of_topic = response.ReassignableTopicResponse(name=topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            outcome = outcomes[TopicPartition(topic.name, index)]
            of_topic.partitions.append(
                response.ReassignablePartitionResponse(
                    partition_index=index,
                    error_code=outcome.code if outcome else ErrorCode.NONE,
                    error_message=outcome.message if outcome else None,
                )
            )
            yield
        answer.responses.append(of_topic)
    return answer
