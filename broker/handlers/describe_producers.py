"""DescribeProducers (61), version 0: who writes to a partition, and in which transactions.

Behaviour: every producer with an id that the partition's log remembers, with its epoch, its last
sequence number, and where its open transaction begins, so that an administrator finds
transactions that hang (KIP-664). Any replica answers, leader or not.
Departures from Kafka: a partition that is named again is answered once.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...controller.topics.topic_names import validate_topic_name
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request

UNKNOWN_TOPIC = "This server does not host this topic-partition."


@in_steps
def handle_describe_producers(
    context: HandlerContext, request: Request[messages.DescribeProducersRequest]
) -> Steps[messages.DescribeProducersResponse]:
    """Look every partition up on its own, and once."""
    response = messages.DescribeProducersResponse
    answer = response()
    answered: dict[str, set[int]] = {}
    for topic in request.body.topics:
        refusal: KafkaError | None = None
        try:
            _check_topic(context, request, topic.name)
        except KafkaError as error:
            refusal = error.as_value()
        of_topic = response.TopicResponse(name=topic.name)
        answered_of_topic = answered.setdefault(topic.name, set())
        for index in topic.partition_indexes:
            yield
            if index in answered_of_topic:
                continue
            answered_of_topic.add(index)
            if refusal is None:
                partition = yield from _describe(context, TopicPartition(topic.name, index))
            else:
                partition = response.PartitionResponse(
                    partition_index=index, error_code=refusal.code, error_message=refusal.message
                )
            of_topic.partitions.append(partition)
        if of_topic.partitions or not topic.partition_indexes:
            answer.topics.append(of_topic)
    return answer


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
) -> Steps[messages.DescribeProducersResponse.PartitionResponse]:
    response = messages.DescribeProducersResponse
    index = topic_partition.partition
    manager = context.replica_manager
    partition = manager.get_partition(topic_partition)
    if partition is None:
        error = manager.partitions.error_of_missing(topic_partition)
        return response.PartitionResponse(partition_index=index, error_code=error)
    described = response.PartitionResponse(partition_index=index)
    for producer_id, state in list(partition.log.producers.published.items()):
        described.active_producers.append(
            response.ProducerState(
                producer_id=producer_id,
                producer_epoch=state.producer_epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.current_txn_first_offset,
            )
        )
        yield
    return described
