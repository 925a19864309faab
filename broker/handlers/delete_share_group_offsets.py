"""DeleteShareGroupOffsets (92), version 0: forget where a share group stands in some topics.

Behaviour: the group may have no members. Each topic for itself, once that is stored; one that the
group has not read is UNKNOWN_TOPIC_OR_PARTITION.
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.error_texts import DEFAULT_TEXTS
from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from .share_group_heartbeat import check_served

TopicAnswer = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
NOTHING_TO_DELETE = "There is no offset information to delete."


@in_steps
def handle_delete_share_group_offsets(
    context: HandlerContext, request: Request[messages.DeleteShareGroupOffsetsRequest]
) -> Steps[messages.DeleteShareGroupOffsetsResponse | Parked]:
    """Forget the topics; answer when that is stored."""
    body = request.body
    response = messages.DeleteShareGroupOffsetsResponse
    topics: list[TopicAnswer] = []
    try:
        check_served(context)
        if not context.authorize(request, "DELETE", "GROUP", body.group_id):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not body.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, DEFAULT_TEXTS[ErrorCode.INVALID_GROUP_ID])
        allowed: list[TopicAnswer] = []
        for each in body.topics:
            yield
            answer = TopicAnswer(topic_name=each.topic_name)
            topics.append(answer)
            if context.authorize(request, "READ", "TOPIC", each.topic_name):
                allowed.append(answer)
            else:
                _refuse(answer, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        share = context.coordinators.group.share
        group = share.find(body.group_id)
        for answer in allowed:
            yield
            topic_id = context.metadata_cache.topic_id(answer.topic_name)
            if topic_id is None:
                _refuse(answer, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif topic_id not in group.now.initialized and topic_id not in group.now.deleting:
                _refuse(answer, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOTHING_TO_DELETE)
            else:
                answer.topic_id = topic_id
        # What is named again is deleted once.
        deleted_ids = {each.topic_id: None for each in topics if not each.error_code}

        def deleted(error: ErrorCode) -> None:
            request.answer_in_turn(_answer(topics, error))

        share.partitions.forget_topics(group, deleted_ids.keys(), deleted)
    except KafkaError as refusal:
        return response(error_code=refusal.code, error_message=refusal.message)
    return PARKED


def _answer(
    topics: list[TopicAnswer], error: ErrorCode
) -> Steps[messages.DeleteShareGroupOffsetsResponse | Parked]:
    for answer in topics:
        yield
        if error and not answer.error_code:
            _refuse(answer, error)
    return messages.DeleteShareGroupOffsetsResponse(responses=topics)


def _refuse(answer: TopicAnswer, error: ErrorCode, message: str | None = None) -> None:
    answer.error_code = error
    answer.error_message = message or DEFAULT_TEXTS[error]
