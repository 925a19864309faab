"""OffsetFetch (9), versions 1-10: how far groups have read.

Behaviour: for each partition the committed position, or -1 and no error where nothing is
committed or the group is not known. Without a list of topics everything that the group
committed is answered. With `require_stable` the answer waits for commits that are on their way
and is UNSTABLE_OFFSET_COMMIT where a transaction that commits there is still open.
Version notes: 2 may ask for all topics and has an error of its own for the group, which
version 1 puts in every partition; 5 has leader epochs (KIP-320); 7 has `require_stable`
(KIP-447); 8 asks for several groups (KIP-709); 9 brings member id and epoch, which members of
consumer groups must have right and classic groups do not look at; 10 names topics by id.
Departures from Kafka: none known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import ZERO_UUID
from ...coordinator.group.offsets import GroupOffsets, OffsetAndMetadata
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked
from ..request.requests import Request
from .offset_commit import FIRST_OFFSETS_VERSION_WITH_TOPIC_IDS

FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_MEMBERS = 9
NOTHING_COMMITTED = OffsetAndMetadata(-1)

Answered = tuple[int, OffsetAndMetadata, ErrorCode]
"""A partition, its position, and its error."""


class RequestedTopic(NamedTuple):
    """A topic whose offsets are requested; `error` goes to all its partitions."""

    name: str
    topic_id: bytes
    partitions: Iterable[int]
    error: ErrorCode


NamedTopic: TypeAlias = (
    "messages.OffsetFetchRequest.OffsetFetchRequestTopic"
    " | messages.OffsetFetchRequest.OffsetFetchRequestTopics"
)
"""A topic of a request for one group, or for several."""


class RequestedGroup(NamedTuple):
    """A group whose offsets are requested; topics are None for all."""

    group_id: str
    topics: Sequence[NamedTopic] | None
    member_id: str | None = None
    member_epoch: int = -1


class GroupAnswer(NamedTuple):
    """The answer for one group."""

    group_id: str
    error: ErrorCode
    topics: list[tuple[RequestedTopic, list[Answered]]]


def handle_offset_fetch(
    context: HandlerContext, request: Request[messages.OffsetFetchRequest]
) -> Parked:
    """Fetch the offsets of every group; answer when the last is done."""
    body = request.body
    if request.api_version >= FIRST_VERSION_WITH_GROUPS:
        requested = [
            RequestedGroup(group.group_id, group.topics, *_member(request, group))
            for group in body.groups
        ]
    else:
        requested = [RequestedGroup(body.group_id, body.topics)]
    answers: dict[int, GroupAnswer] = {}

    def fetched(index: int, error: ErrorCode, offsets: GroupOffsets) -> None:
        answers[index] = _group_answer(context, request, requested[index], error, offsets)
        if len(answers) == len(requested):
            _answer(request, [answers[number] for number in range(len(requested))])

    if not requested:
        _answer(request, [])
    for index, group in enumerate(requested):
        try:
            if not context.authorize(request, "DESCRIBE", "GROUP", group.group_id):
                raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            context.coordinators.group.fetch_offsets(
                group.group_id,
                partial(fetched, index),
                require_stable=body.require_stable,
                member_id=group.member_id,
                member_epoch=group.member_epoch,
            )
        except KafkaError as refusal:
            fetched(index, refusal.code, GroupOffsets())
    return PARKED


def _member(
    request: Request[messages.OffsetFetchRequest],
    group: messages.OffsetFetchRequest.OffsetFetchRequestGroup,
) -> tuple[str | None, int]:
    """Who asks, where the version lets it say so."""
    if request.api_version < FIRST_VERSION_WITH_MEMBERS:
        return None, -1
    return group.member_id, group.member_epoch


def _group_answer(
    context: HandlerContext,
    request: Request[messages.OffsetFetchRequest],
    requested: RequestedGroup,
    error: ErrorCode,
    offsets: GroupOffsets,
) -> GroupAnswer:
    if error:
        topics = []
        if request.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
            topics = [
                (topic, [(index, NOTHING_COMMITTED, error) for index in topic.partitions])
                for topic in _requested_topics(context, request, requested.topics or [])
            ]
        return GroupAnswer(requested.group_id, error, topics)
    if requested.topics is None:
        named = _all_topics(context, request, offsets)
    else:
        named = _requested_topics(context, request, requested.topics)
    require_stable = request.body.require_stable
    return GroupAnswer(
        requested.group_id,
        ErrorCode.NONE,
        [
            (
                topic,
                [_position(offsets, topic, index, require_stable) for index in topic.partitions],
            )
            for topic in named
        ],
    )


def _position(
    offsets: GroupOffsets, topic: RequestedTopic, index: int, require_stable: bool
) -> Answered:
    if topic.error:
        return index, NOTHING_COMMITTED, topic.error
    if require_stable and offsets.is_pending(topic.name, index):
        return index, NOTHING_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT
    position = offsets.get(topic.name, index)
    if position is None or not position.is_for_topic(topic.topic_id):
        return index, NOTHING_COMMITTED, ErrorCode.NONE
    return index, position, ErrorCode.NONE


def _requested_topics(
    context: HandlerContext,
    request: Request[messages.OffsetFetchRequest],
    topics: Iterable[NamedTopic],
) -> list[RequestedTopic]:
    """The topics of a request, by whatever they are named there."""
    by_id = request.api_version >= FIRST_OFFSETS_VERSION_WITH_TOPIC_IDS
    requested = []
    for topic in topics:
        name = topic.name
        topic_id, error = ZERO_UUID, ErrorCode.NONE
        if by_id and isinstance(topic, messages.OffsetFetchRequest.OffsetFetchRequestTopics):
            topic_id = topic.topic_id
            known = context.metadata_cache.topic_name(topic_id)
            if known is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                name = known
        if not error and not context.authorize(request, "DESCRIBE", "TOPIC", name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        requested.append(RequestedTopic(name, topic_id, topic.partition_indexes, error))
    return requested


def _all_topics(
    context: HandlerContext, request: Request[messages.OffsetFetchRequest], offsets: GroupOffsets
) -> list[RequestedTopic]:
    """All topics that the group committed for and the client may know of."""
    return [
        RequestedTopic(
            name,
            context.metadata_cache.topic_id(name) or ZERO_UUID,
            list(partitions),
            ErrorCode.NONE,
        )
        for name, partitions in offsets.topics()
        if context.authorize(request, "DESCRIBE", "TOPIC", name)
    ]


def _answer(request: Request[messages.OffsetFetchRequest], groups: list[GroupAnswer]) -> None:
    response = messages.OffsetFetchResponse
    if request.api_version >= FIRST_VERSION_WITH_GROUPS:
        request.answer(response(groups=[_group_response(group) for group in groups]))
        return
    group = groups[0]
    request.answer(
        response(
            error_code=group.error,
            topics=[
                response.OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=[
                        response.OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=position.offset,
                            committed_leader_epoch=position.leader_epoch,
                            metadata=position.metadata,
                            error_code=error,
                        )
                        for index, position, error in partitions
                    ],
                )
                for topic, partitions in group.topics
            ],
        )
    )


def _group_response(group: GroupAnswer) -> messages.OffsetFetchResponse.OffsetFetchResponseGroup:
    response = messages.OffsetFetchResponse
    return response.OffsetFetchResponseGroup(
        group_id=group.group_id,
        error_code=group.error,
        topics=[
            response.OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    response.OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=position.offset,
                        committed_leader_epoch=position.leader_epoch,
                        metadata=position.metadata,
                        error_code=error,
                    )
                    for index, position, error in partitions
                ],
            )
            for topic, partitions in group.topics
        ],
    )
