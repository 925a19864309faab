"""AlterShareGroupOffsets (91), version 0: where a share group without members is to go on.

Behaviour: each partition for itself, once the share coordinator has stored it. What the group has
acknowledged after that offset is forgotten. A group that is not there begins, if there is anything
to alter.
Departures from Kafka: an offset below -1 is INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...common.error_texts import DEFAULT_TEXTS
from ...common.errors import ErrorCode, KafkaError
from ...coordinator.group.share.share_partitions import PartitionAnswers, PartitionKey
from ...coordinator.share.operations import UNINITIALIZED_OFFSET, StateAnswer
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from .share_group_heartbeat import check_served

AlteredTopic = messages.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
TopicAnswer = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
PartitionAnswer = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


@in_steps
def handle_alter_share_group_offsets(
    context: HandlerContext, request: Request[messages.AlterShareGroupOffsetsRequest]
) -> Steps[messages.AlterShareGroupOffsetsResponse | Parked]:
    """Set the offsets; answer when all are stored or refused."""
    body = request.body
    response = messages.AlterShareGroupOffsetsResponse
    offsets: dict[PartitionKey, int] = {}
    refused: dict[tuple[str, int], ErrorCode] = {}
    names: dict[bytes, str] = {}
    try:
        check_served(context)
        if not context.authorize(request, "READ", "GROUP", body.group_id):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not body.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, DEFAULT_TEXTS[ErrorCode.INVALID_GROUP_ID])
        for topic in body.topics:
            topic_id = context.metadata_cache.topic_id(topic.topic_name)
            is_allowed = context.authorize(request, "READ", "TOPIC", topic.topic_name)
            for each in topic.partitions:
                yield
                name, number = topic.topic_name, each.partition_index
                if not is_allowed:
                    refused[name, number] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                elif topic_id is None or not context.metadata_cache.contains_partition(
                    name, number
                ):
                    refused[name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif each.start_offset < UNINITIALIZED_OFFSET:
                    refused[name, number] = ErrorCode.INVALID_REQUEST
                else:
                    offsets[topic_id, number] = each.start_offset
                    names[topic_id] = name

        def altered(answers: PartitionAnswers) -> None:
            request.answer_in_turn(_answer(context, body.topics, answers, refused))

        share = context.coordinators.group.share
        share.alter_offsets(body.group_id, offsets, names, altered)
    except KafkaError as refusal:
        return response(error_code=refusal.code, error_message=refusal.message)
    return PARKED


def _answer(
    context: HandlerContext,
    topics: Iterable[AlteredTopic],
    answers: PartitionAnswers,
    refused: dict[tuple[str, int], ErrorCode],
) -> Steps[messages.AlterShareGroupOffsetsResponse | Parked]:
    response = messages.AlterShareGroupOffsetsResponse()
    for topic in topics:
        name = topic.topic_name
        topic_id = context.metadata_cache.topic_id(name)
        answer = TopicAnswer(topic_name=name)
        if topic_id is not None:
            answer.topic_id = topic_id
        response.responses.append(answer)
        for each in topic.partitions:
            yield
            number = each.partition_index
            code = refused.get((name, number))
            found = answers.get((topic_id or b"", number), StateAnswer())
            if code:
                found = StateAnswer(code, DEFAULT_TEXTS[code])
            answer.partitions.append(
                PartitionAnswer(
                    partition_index=number, error_code=found.error, error_message=found.message
                )
            )
    return response
