"""OffsetForLeaderEpoch (23), versions 2-4: where an epoch of a partition's leaders ended.

Behaviour: the largest epoch not above the requested one, and the offset at which the next one
began, or the log's end for the current epoch (KIP-101, KIP-279, KIP-320). A client that
sees its own position beyond that knows that its log was truncated.
Version notes: 3 names the replica that asks; 4 is flexible.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request


@in_steps
def handle_offset_for_leader_epoch(
    context: HandlerContext, request: Request[messages.OffsetForLeaderEpochRequest]
) -> Steps[messages.OffsetForLeaderEpochResponse]:
    """Answer from the partition's epoch cache."""
    body = request.body
    response = messages.OffsetForLeaderEpochResponse
    topics = []
    is_broker = context.admission.has_authorizer and context.admission.is_allowed(
        request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME
    )
    for topic in body.topics:
        partitions = []
        for requested in topic.partitions:
            error, epoch, end_offset = ErrorCode.NONE, -1, -1
            try:
                if not (is_broker or context.authorize(request, "DESCRIBE", "TOPIC", topic.topic)):
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = context.replica_manager.partition_or_error(
                    TopicPartition(topic.topic, requested.partition)
                )
                partition.check_leader(requested.current_leader_epoch)
                epoch, end_offset = partition.end_offset_for_epoch(requested.leader_epoch)
            except KafkaError as refusal:
                error = refusal.code
            partitions.append(
                response.EpochEndOffset(
                    error_code=error,
                    partition=requested.partition,
                    leader_epoch=epoch,
                    end_offset=end_offset,
                )
            )
            yield
        topics.append(response.OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
    return response(topics=topics)
