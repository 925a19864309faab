"""DescribeShareGroupOffsets (90), versions 0-1: where share groups stand in their partitions.

Behaviour: each group for itself; without topics, all that it has read and that the client may
describe. The share coordinators say it. A partition that the group has not begun has offset
-1, and so has one that is not there, or of a group that is not there.
Version notes: 1 tells how many records are still to be read (KIP-1226).
How many that is, is -1 where the leader does not say, and negative where the offset is beyond the
end.
Departures from Kafka: a topic without partitions is answered so; there it is UNKNOWN_SERVER_ERROR.
A partition that is named again for a group is answered once, and so is a group all of whose
partitions are; groups behind 100,000 partitions are POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

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
PARTITIONS_MAX = 100_000
"""Groups behind so many are refused: nobody's memory goes for one answer."""
TOO_MUCH_FOR_ONE_ANSWER = "The answer would be too large: describe fewer groups in a request."

DescribeRequest: TypeAlias = Request[messages.DescribeShareGroupOffsetsRequest]
RequestedGroup: TypeAlias = (
    messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
)
RequestedTopics: TypeAlias = (
    list[messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
)
Response = messages.DescribeShareGroupOffsetsResponse
GroupAnswer = Response.DescribeShareGroupOffsetsResponseGroup
TopicAnswer = Response.DescribeShareGroupOffsetsResponseTopic
PartitionAnswer = Response.DescribeShareGroupOffsetsResponsePartition
Ends = Mapping[TopicPartition, int | None]


class DescribedTopic(NamedTuple):
    """A topic of a group, and which of its partitions are answered, all with `error` if any."""

    name: str
    topic_id: bytes | None
    partitions: Sequence[int]
    error: ErrorCode = ErrorCode.NONE


class DescribedGroup(NamedTuple):
    """What is known of a group: a refusal, or where it stands."""

    group_id: str
    refusal: KafkaError | None
    topics: Sequence[DescribedTopic]
    answers: PartitionAnswers


@in_steps
def handle_describe_share_group_offsets(
    context: HandlerContext, request: DescribeRequest
) -> Steps[messages.DescribeShareGroupOffsetsResponse | Parked]:
    """Describe every requested group; answer when the last is known."""
    requested = yield from _once(request.body.groups)
    if not requested:
        return Response()
    described: dict[int, DescribedGroup] = {}

    def put(index: int, group: DescribedGroup) -> None:
        described[index] = group
        if len(described) == len(requested):
            groups = [described[each] for each in range(len(requested))]
            request.answer_in_turn(_find_ends(context, request, groups))

    def known(
        index: int, group_id: str, topics: list[DescribedTopic], answers: PartitionAnswers
    ) -> None:
        put(index, DescribedGroup(group_id, None, topics, answers))

    count = 0
    for index, (group_id, wanted) in enumerate(requested):
        yield
        try:
            check_served(context)
            if not context.authorize(request, "DESCRIBE", "GROUP", group_id):
                raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            if count > PARTITIONS_MAX:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MUCH_FOR_ONE_ANSWER)
            share = context.coordinators.group.share
            group = share.find_if_known(group_id)
            initialized = {} if group is None else group.now.initialized
            if wanted is None:
                topics = _all_topics(context, request, initialized)
            else:
                topics = yield from _topics(context, request, wanted)
            keys = yield from _begun(initialized, topics)
            count += sum(len(topic.partitions) for topic in topics)
            share.partitions.describe(group_id, keys, partial(known, index, group_id, topics))
        except KafkaError as refusal:
            put(index, DescribedGroup(group_id, refusal.as_value(), (), {}))
    return PARKED


def _once(
    groups: Iterable[RequestedGroup],
) -> Steps[list[tuple[str, dict[str, dict[int, None]] | None]]]:
    """The groups, but for what is requested of them again.

    Returns:
        Each group with its topics and their partitions; None: with all that it has read.
    """
    once: list[tuple[str, dict[str, dict[int, None]] | None]] = []
    all_of: set[str] = set()
    some_of: dict[str, dict[str, dict[int, None]]] = {}
    for group in groups:
        yield
        group_id = group.group_id
        if group.topics is None:
            if group_id not in all_of:
                all_of.add(group_id)
                once.append((group_id, None))
            continue
        if group_id not in some_of:
            some_of[group_id] = {}
            once.append((group_id, some_of[group_id]))
        for topic in group.topics:
            numbers = some_of[group_id].setdefault(topic.topic_name, {})
            for number in topic.partitions:
                yield
                numbers[number] = None
    return once


def _all_topics(
    context: HandlerContext, request: DescribeRequest, initialized: Mapping[bytes, SharedTopic]
) -> list[DescribedTopic]:
    """All that a group has read and that the client may describe."""
    return [
        DescribedTopic(topic.name, topic_id, sorted(topic.partitions))
        for topic_id, topic in initialized.items()
        if context.metadata_cache.topic_name(topic_id) == topic.name
        and context.admission.is_allowed(request, "DESCRIBE", "TOPIC", topic.name)
    ]


def _topics(
    context: HandlerContext, request: DescribeRequest, wanted: Mapping[str, Mapping[int, None]]
) -> Steps[list[DescribedTopic]]:
    topics: list[DescribedTopic] = []
    for name, numbers in wanted.items():
        yield
        error = ErrorCode.NONE
        topic_id = context.metadata_cache.topic_id(name)
        if not context.authorize(request, "DESCRIBE", "TOPIC", name):
            error, topic_id = ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
        topics.append(DescribedTopic(name, topic_id, list(numbers), error))
    return topics


def _begun(
    initialized: Mapping[bytes, SharedTopic], topics: Iterable[DescribedTopic]
) -> Steps[list[PartitionKey]]:
    """The partitions of which the share coordinators know something."""
    keys: list[PartitionKey] = []
    for topic in topics:
        if topic.topic_id is None or topic.topic_id not in initialized:
            continue
        begun = initialized[topic.topic_id].partitions
        for number in topic.partitions:
            yield
            if number in begun:
                keys.append((topic.topic_id, number))
    return keys


def _find_ends(
    context: HandlerContext, request: DescribeRequest, groups: Sequence[DescribedGroup]
) -> Steps[messages.DescribeShareGroupOffsetsResponse | Parked]:
    """Answer, once it is known where the partitions end, for versions that tell the lag."""
    ends: set[TopicPartition] = set()
    if request.api_version >= FIRST_VERSION_WITH_LAG:
        for group in groups:
            for topic in group.topics:
                for number in topic.partitions:
                    yield
                    if (topic.topic_id, number) in group.answers:
                        ends.add(TopicPartition(topic.name, number))
    if not ends:
        return (yield from _answer(groups, {}))

    def found(ends: Ends) -> None:
        request.answer_in_turn(_answer(groups, ends))

    yield from context.coordinators.end_offsets.find(ends, found)
    return PARKED


def _answer(
    groups: Iterable[DescribedGroup], ends: Ends
) -> Steps[messages.DescribeShareGroupOffsetsResponse | Parked]:
    answer = Response()
    for group in groups:
        yield
        described = GroupAnswer(group_id=group.group_id)
        answer.groups.append(described)
        if group.refusal is not None:
            described.error_code = group.refusal.code
            if group.refusal.code is not ErrorCode.GROUP_AUTHORIZATION_FAILED:  # as Kafka has it
                described.error_message = group.refusal.message
        for topic in group.topics:
            of_topic = TopicAnswer(topic_name=topic.name)
            described.topics.append(of_topic)
            if topic.topic_id is not None:
                of_topic.topic_id = topic.topic_id
            for number in topic.partitions:
                yield
                if topic.error:
                    partition = PartitionAnswer(
                        partition_index=number,
                        start_offset=UNINITIALIZED_OFFSET,
                        error_code=topic.error,
                        error_message=AUTHORIZATION_FAILED[topic.error],
                    )
                else:
                    state = group.answers.get((topic.topic_id or b"", number), NOT_BEGUN)
                    end = ends.get(TopicPartition(topic.name, number))
                    partition = _partition(number, state, end)
                of_topic.partitions.append(partition)
    return answer


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
