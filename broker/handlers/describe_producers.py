"""DescribeProducers (61), version 0: who writes to a partition, and in which transactions.

Behaviour: every producer with an id that the partition's log remembers, with its epoch, its last
sequence number, and where its open transaction begins, so that an administrator finds
transactions that hang (KIP-664). Any replica answers, leader or not.
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...controller.topics.topic_names import validate_topic_name
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request

UNKNOWN_TOPIC = "This server does not host this topic-partition."


def handle_describe_producers(
    context: HandlerContext, request: Request[messages.DescribeProducersRequest]
) -> Answer[messages.DescribeProducersResponse]:
    """Look every partition up on its own."""
    body = request.body
    response = messages.DescribeProducersResponse
    topics = []
    for topic in body.topics:
        try:
            _check_topic(context, request, topic.name)
            partitions = [
                _describe(context, TopicPartition(topic.name, index))
                for index in topic.partition_indexes
            ]
        except KafkaError as refusal:
            partitions = [
                response.PartitionResponse(
                    partition_index=index, error_code=refusal.code, error_message=refusal.message
                )
                for index in topic.partition_indexes
            ]
        topics.append(response.TopicResponse(name=topic.name, partitions=partitions))
    return Answer(response(topics=topics))


def _check_topic(
    context: HandlerContext, request: Request[messages.DescribeProducersRequest], name: str
) -> None:
    """Refuse a topic that cannot be, may not be read, or is not there. Raises KafkaError."""
    validate_topic_name(name)
    if not context.authorize(request, "READ", "TOPIC", name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not context.metadata_cache.contains(name):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC)


def _describe(
    context: HandlerContext, topic_partition: TopicPartition
) -> messages.DescribeProducersResponse.PartitionResponse:
    response = messages.DescribeProducersResponse
    index = topic_partition.partition
    manager = context.replica_manager
    partition = manager.get_partition(topic_partition)
    if partition is None:
        error = manager.partitions.error_of_missing(topic_partition)
        return response.PartitionResponse(partition_index=index, error_code=error)
    return response.PartitionResponse(
        partition_index=index,
        active_producers=[
            response.ProducerState(
                producer_id=producer_id,
                producer_epoch=state.producer_epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.current_txn_first_offset,
            )
            for producer_id, state in partition.log.producers.published.items()
        ],
    )
