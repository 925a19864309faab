"""DescribeShareGroupOffsets (90), versions 0-1: where share groups stand in their partitions.

Behaviour: each group for itself; without topics, all that it has read and that the client may
describe. The share coordinators say it. A partition that the group has not begun has offset
-1, and so has one that is not there, or of a group that is not there.
Version notes: 1 tells how many records are still to be read (KIP-1226).
How many that is, is -1 where the leader does not say, and negative where the offset is beyond the
end.
Departures from Kafka: a topic without partitions is answered so; there it is UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from ...common.errors import AUTHORIZATION_FAILED, ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...coordinator.group.share.share_group import SharedTopic
from ...coordinator.group.share.share_partitions import PartitionAnswers, PartitionKey
from ...coordinator.share.operations import UNINITIALIZED_OFFSET, StateAnswer
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from .share_group_heartbeat import check_served

UNKNOWN_LAG = -1
FIRST_VERSION_WITH_LAG = 1
NOT_BEGUN = StateAnswer()
TopicAnswer = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
PartitionAnswer = (
    messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
)
Ends = Mapping[TopicPartition, int | None]
GroupAnswer = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup


@in_steps
def handle_describe_share_group_offsets(
    context: HandlerContext, request: Request[messages.DescribeShareGroupOffsetsRequest]
) -> Steps[messages.DescribeShareGroupOffsetsResponse | Parked]:
    """Describe every requested group; answer when the last is known."""
    response = messages.DescribeShareGroupOffsetsResponse
    groups = request.body.groups
    described: dict[int, GroupAnswer] = {}
    reports_lag = request.api_version >= FIRST_VERSION_WITH_LAG

    def put(index: int, answer: GroupAnswer) -> None:
        described[index] = answer
        if len(described) == len(groups):
            request.answer(response(groups=[described[each] for each in range(len(groups))]))

    def known(
        index: int,
        group_id: str,
        topics: list[tuple[TopicAnswer, Iterable[int]]],
        answers: PartitionAnswers,
    ) -> None:
        def ends_known(ends: Ends) -> None:
            found = [_answer(topic, numbers, answers, ends) for topic, numbers in topics]
            put(index, GroupAnswer(group_id=group_id, topics=found))

        begun = {
            TopicPartition(topic.topic_name, number)
            for topic, numbers in topics
            for number in numbers
            if (topic.topic_id, number) in answers
        }
        context.coordinators.end_offsets.find(begun if reports_lag else (), ends_known)

    if not groups:
        return response()
    for index, requested in enumerate(groups):
        yield
        try:
            check_served(context)
            if not context.authorize(request, "DESCRIBE", "GROUP", requested.group_id):
                code = ErrorCode.GROUP_AUTHORIZATION_FAILED
                put(index, GroupAnswer(group_id=requested.group_id, error_code=code))
                continue
            share = context.coordinators.group.share
            group = share.find_if_known(requested.group_id)
            initialized = {} if group is None else group.now.initialized
            topics = _topics(context, request, initialized, requested.topics)
            keys: list[PartitionKey] = [
                (topic.topic_id, number)
                for topic, numbers in topics
                for number in numbers
                if not topic.partitions
                and topic.topic_id in initialized
                and number in initialized[topic.topic_id].partitions
            ]
            share.partitions.describe(
                requested.group_id, keys, partial(known, index, requested.group_id, topics)
            )
        except KafkaError as refusal:
            put(
                index,
                GroupAnswer(
                    group_id=requested.group_id,
                    error_code=refusal.code,
                    error_message=refusal.message,
                ),
            )
    return PARKED


def _topics(
    context: HandlerContext,
    request: Request[messages.DescribeShareGroupOffsetsRequest],
    initialized: Mapping[bytes, SharedTopic],
    requested: Iterable[
        messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic
    ]
    | None,
) -> list[tuple[TopicAnswer, Iterable[int]]]:
    """The topics to be answered, each with its partitions; those refused are answered already."""
    cache = context.metadata_cache
    if requested is None:
        return [
            (TopicAnswer(topic_name=topic.name, topic_id=topic_id), sorted(topic.partitions))
            for topic_id, topic in initialized.items()
            if cache.topic_name(topic_id) == topic.name
            and context.admission.is_allowed(request, "DESCRIBE", "TOPIC", topic.name)
        ]
    topics: list[tuple[TopicAnswer, Iterable[int]]] = []
    for each in requested:
        answer = TopicAnswer(topic_name=each.topic_name)
        topic_id = cache.topic_id(each.topic_name)
        if not context.authorize(request, "DESCRIBE", "TOPIC", each.topic_name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answer.partitions = [
                PartitionAnswer(
                    partition_index=number,
                    start_offset=UNINITIALIZED_OFFSET,
                    error_code=error,
                    error_message=AUTHORIZATION_FAILED[error],
                )
                for number in each.partitions
            ]
        elif topic_id is not None:
            answer.topic_id = topic_id
        topics.append((answer, each.partitions))
    return topics


def _answer(
    topic: TopicAnswer, numbers: Iterable[int], answers: PartitionAnswers, ends: Ends
) -> TopicAnswer:
    if not topic.partitions:
        topic.partitions = [
            _partition(
                number,
                answers.get((topic.topic_id, number), NOT_BEGUN),
                ends.get(TopicPartition(topic.topic_name, number)),
            )
            for number in numbers
        ]
    return topic


def _partition(number: int, answer: StateAnswer, end: int | None) -> PartitionAnswer:
    return PartitionAnswer(
        partition_index=number,
        start_offset=answer.start_offset,
        leader_epoch=answer.leader_epoch,
        lag=_lag(answer, end),
        error_code=answer.error,
        error_message=answer.message,
    )


def _lag(answer: StateAnswer, end: int | None) -> int:
    """How many records are to be read and not done with, as far as is known."""
    if (
        end is None
        or answer.start_offset == UNINITIALIZED_OFFSET
        or answer.delivery_complete_count < 0
    ):
        return UNKNOWN_LAG
    return end - answer.start_offset - answer.delivery_complete_count
