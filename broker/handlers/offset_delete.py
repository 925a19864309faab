"""OffsetDelete (47), version 0: forget how far a group has read some partitions (KIP-496).

Behaviour: each partition succeeds or fails on its own; topics that a consumer group reads
at the moment are GROUP_SUBSCRIBED_TO_TOPIC. A group that has members which are no
consumers is NON_EMPTY_GROUP as a whole.
Departures from Kafka: none known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ...runtime.steps import Steps, count_items, in_batches
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

KEYS_PER_PIECE = 100
"""So many are deleted at a time."""
PIECES_PER_FLUSH = 5
"""After so many pieces what is staged is written and gone: their ends come in pieces, too."""
OF_PARTITIONS = (ErrorCode.NONE, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
"""What a coordinator says of single partitions; anything else befell the whole request."""

Place: TypeAlias = (
    "tuple[tuple[str, int], messages.OffsetDeleteResponse.OffsetDeleteResponsePartition]"
)
"""Where the error of a topic's partition goes in the response."""


@in_steps
def handle_offset_delete(
    context: HandlerContext, request: Request[messages.OffsetDeleteRequest]
) -> Steps[messages.OffsetDeleteResponse | Parked]:
    """Delete what may be deleted; the answer comes when that is stored."""
    body = request.body
    if not context.authorize(request, "DELETE", "GROUP", body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    response = messages.OffsetDeleteResponse
    topics, places = yield from _resolve(context, request)
    # Thousands are deleted as if by several requests, each key once.
    keys = list(dict.fromkeys([key for key, _ in places]))
    pieces = list(in_batches(keys, KEYS_PER_PIECE)) or [[]]
    results: dict[tuple[str, int], ErrorCode] = {}
    refusals: list[ErrorCode] = []
    left = len(pieces)

    def deleted(piece: Sequence[tuple[str, int]], errors: Sequence[ErrorCode]) -> None:
        nonlocal left
        results.update(zip(piece, errors, strict=True))
        refusals.extend(error for error in errors if error not in OF_PARTITIONS)
        left -= 1
        if not left:
            request.answer_after(answer())

    def answer() -> Steps[messages.OffsetDeleteResponse]:
        if refusals:
            return response(error_code=refusals[0])
        for key, place in places:
            place.error_code = results[key]
            yield
        return response(topics=topics)

    for number, piece in enumerate(pieces, start=1):
        try:
            context.coordinators.group.delete_offsets(body.group_id, piece, partial(deleted, piece))
        except KafkaError as refusal:
            return response(error_code=refusal.code)
        if number % PIECES_PER_FLUSH == 0:
            context.replica_manager.flush()
        yield from count_items(len(piece))
    return PARKED


def _resolve(
    context: HandlerContext, request: Request[messages.OffsetDeleteRequest]
) -> Steps[tuple[list[messages.OffsetDeleteResponse.OffsetDeleteResponseTopic], list[Place]]]:
    """The topics of the response with all that is refused already, and the places left."""
    response = messages.OffsetDeleteResponse
    places: list[Place] = []
    topics = []
    for topic in request.body.topics:
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
                places.append((key, place))
        if partitions:
            of_topic = response.OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)
            topics.append(of_topic)
    return topics, places
