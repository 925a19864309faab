"""DescribeTopicPartitions (75), version 0: topics' partitions, page by page (KIP-966).

Behaviour: topics in the order of their names, all of them if none is named, at most
`response_partition_limit` partitions and never more than `max.request.partition.size.limit`.
Where more are left, `next_cursor` says with which topic and partition to go on; a request with a
cursor passes over the topics before it. Topics that are not there are listed with their error, if
they were named.
Version notes: there is one version.
Departures from Kafka: an empty name is INVALID_TOPIC_EXCEPTION, not UNKNOWN_SERVER_ERROR. Eligible
leader replicas exist in KRaft only: the lists are empty.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import INTERNAL_TOPICS
from ...common.partition_state import PartitionState
from ...controller.topics.topic_names import topic_name_problem
from ...metadata.metadata_cache import MetadataSnapshot
from ...metadata.partition_metadata import partition_metadata
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.authorization import authorized_operations
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request


@in_steps
def handle_describe_topic_partitions(
    context: HandlerContext, request: Request[messages.DescribeTopicPartitionsRequest]
) -> Steps[messages.DescribeTopicPartitionsResponse]:
    """Tell the partitions from the cursor on, up to the limit."""
    body = request.body
    response = messages.DescribeTopicPartitionsResponse
    snapshot = context.metadata_cache.snapshot
    start_topic, start_partition = _start(body)
    limit_max: int = context.config["max.request.partition.size.limit"]
    remaining = max(min(limit_max, body.response_partition_limit), 1)
    answer = response()
    denied = []
    for name in _names(body, snapshot, start_topic):
        yield
        if not context.authorize(request, "DESCRIBE", "TOPIC", name):
            if body.topics:
                denied.append(_denied(name))
            continue
        if remaining == 0:
            answer.next_cursor = response.Cursor(topic_name=name, partition_index=0)
            break
        topic = _topic(context, request, snapshot, name)
        answer.topics.append(topic)
        first = start_partition if name == start_topic else 0
        states = [
            state
            for partition, state in snapshot.partition_states.get(name, {}).items()
            if partition >= first
        ]
        listener_name = request.connection.listener_name
        for state in states[:remaining]:
            topic.partitions.append(_partition(snapshot, state, listener_name))
            yield
        if len(states) > remaining:
            answer.next_cursor = response.Cursor(
                topic_name=name, partition_index=states[remaining].partition
            )
            break
        remaining -= len(states)
    answer.topics += denied
    return answer


def _start(body: messages.DescribeTopicPartitionsRequest) -> tuple[str, int]:
    """Topic and partition to begin with.

    Raises:
        KafkaError: INVALID_REQUEST for a cursor that belongs to another request.
    """
    cursor = body.cursor
    if cursor is None:
        return "", 0
    if body.topics and cursor.topic_name not in [topic.name for topic in body.topics]:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The cursor's topic {cursor.topic_name!r} is not among those requested.",
        )
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no partition {cursor.partition_index}."
        )
    return cursor.topic_name, cursor.partition_index


def _names(
    body: messages.DescribeTopicPartitionsRequest, snapshot: MetadataSnapshot, start: str
) -> list[str]:
    requested = {topic.name for topic in body.topics} or snapshot.partition_states
    return sorted([name for name in requested if name >= start])


def _denied(
    name: str,
) -> messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
    )


def _topic(
    context: HandlerContext,
    request: Request[messages.DescribeTopicPartitionsRequest],
    snapshot: MetadataSnapshot,
    name: str,
) -> messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    topic = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations(
            context.admission.authorize_reported, request, "TOPIC", name
        ),
    )
    if name in snapshot.topic_ids:
        topic.topic_id = snapshot.topic_ids[name]
    elif topic_name_problem(name) is None:
        topic.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return topic


def _partition(
    snapshot: MetadataSnapshot, state: PartitionState, listener_name: str
) -> messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition:
    metadata = partition_metadata(snapshot, state, listener_name)
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        error_code=metadata.error,
        partition_index=state.partition,
        leader_id=metadata.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(metadata.replicas),
        isr_nodes=list(metadata.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=list(metadata.offline_replicas),
    )
