"""DeleteRecords (21), versions 0-2: make records before an offset unreadable (KIP-107).

Behaviour: the log start moves to the offset, -1 meaning the high watermark; whole
segments below it are deleted in time. Waits until the replicas on living brokers have done
the same, and answers the lowest log start, else REQUEST_TIMED_OUT.
Version notes: 2 is flexible.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...replication.purgatory.delayed_delete_records import DeleteRecordsResults
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request


@in_steps
def handle_delete_records(
    context: HandlerContext, request: Request[messages.DeleteRecordsRequest]
) -> Steps[messages.DeleteRecordsResponse | Parked]:
    """Advance the log start of every partition named; the answer may come later."""
    body = request.body
    offsets: dict[TopicPartition, int] = {}
    for topic in body.topics:
        is_allowed = context.authorize(request, "DELETE", "TOPIC", topic.name)
        for partition in topic.partitions:
            if is_allowed:
                offsets[TopicPartition(topic.name, partition.partition_index)] = partition.offset
            yield
    yield from context.replica_manager.delete_records_in_steps(
        offsets,
        body.timeout_ms,
        lambda results: request.answer_after(_response(body, results)),
    )
    return PARKED


def _response(
    body: messages.DeleteRecordsRequest, results: DeleteRecordsResults
) -> Steps[messages.DeleteRecordsResponse]:
    response = messages.DeleteRecordsResponse
    denied = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    topics = []
    for topic in body.topics:
        partitions = []
        for requested in topic.partitions:
            error, low_watermark = results.get(
                TopicPartition(topic.name, requested.partition_index), denied
            )
            partitions.append(
                response.DeleteRecordsPartitionResult(
                    partition_index=requested.partition_index,
                    low_watermark=low_watermark,
                    error_code=error,
                )
            )
            yield
        topics.append(response.DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
    return response(topics=topics)
