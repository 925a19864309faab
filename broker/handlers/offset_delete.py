"""OffsetDelete (47), version 0: forget how far a group has read some partitions (KIP-496).

Behaviour: each partition succeeds or fails on its own; topics that a consumer group reads
at the moment are GROUP_SUBSCRIBED_TO_TOPIC. A group that has members which are no
consumers is NON_EMPTY_GROUP as a whole.
Departures from Kafka: none known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ...runtime.long_work import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

OF_PARTITIONS = (ErrorCode.NONE, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
"""What a coordinator says of single partitions; anything else befell the whole request."""


@in_steps
def handle_offset_delete(
    context: HandlerContext, request: Request[messages.OffsetDeleteRequest]
) -> Steps[messages.OffsetDeleteResponse | Parked]:
    """Delete what may be deleted; the answer comes when that is stored."""
    body = request.body
    if not context.authorize(request, "DELETE", "GROUP", body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    response = messages.OffsetDeleteResponse
    keys: list[tuple[str, int]] = []
    places: list[messages.OffsetDeleteResponse.OffsetDeleteResponsePartition] = []
    topics = []
    for topic in body.topics:
        may_read = context.authorize(request, "READ", "TOPIC", topic.name)
        partitions = []
        for requested in topic.partitions:
            yield
            key = (topic.name, requested.partition_index)
            error = ErrorCode.NONE
            if not may_read:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not context.metadata_cache.contains_partition(*key):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            place = response.OffsetDeleteResponsePartition(
                partition_index=requested.partition_index, error_code=error
            )
            partitions.append(place)
            if not error:
                keys.append(key)
                places.append(place)
        if partitions:
            of_topic = response.OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)
            topics.append(of_topic)

    def respond(errors: Sequence[ErrorCode]) -> None:
        of_group = next((error for error in errors if error not in OF_PARTITIONS), None)
        if of_group is not None:
            request.answer(response(error_code=of_group))
            return
        for place, error in zip(places, errors, strict=True):
            place.error_code = error
        request.answer(response(topics=topics))

    try:
        context.coordinators.group.delete_offsets(body.group_id, keys, respond)
    except KafkaError as refusal:
        request.answer(response(error_code=refusal.code))
    return PARKED
