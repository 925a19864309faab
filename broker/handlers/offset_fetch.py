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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import ZERO_UUID
from ...coordinator.group.offsets import GroupOffsets, OffsetAndMetadata
from ...protocol import messages
from ...runtime.steps import Steps, map_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from .offset_commit import FIRST_OFFSETS_VERSION_WITH_TOPIC_IDS

FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_MEMBERS = 9
NOTHING_COMMITTED = OffsetAndMetadata(-1)

PartitionT = TypeVar("PartitionT")

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


@in_steps
def handle_offset_fetch(
    context: HandlerContext, request: Request[messages.OffsetFetchRequest]
) -> Steps[messages.OffsetFetchResponse | Parked]:
    """Fetch the offsets of every group; answer when the last is done."""
    body = request.body
    if request.api_version >= FIRST_VERSION_WITH_GROUPS:
        requested = yield from _once(request)
    else:
        requested = [RequestedGroup(body.group_id, body.topics)]
    found: dict[int, tuple[ErrorCode, GroupOffsets]] = {}
    is_parked = False

    def fetched(index: int, error: ErrorCode, offsets: GroupOffsets) -> None:
        found[index] = error, offsets
        if is_parked and len(found) == len(requested):
            request.answer_after(_answer(context, request, requested, found))

    for index, group in enumerate(requested):
        yield
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
    if len(found) < len(requested):
        is_parked = True
        return PARKED
    response = yield from _answer(context, request, requested, found)
    return response


def _once(request: Request[messages.OffsetFetchRequest]) -> Steps[list[RequestedGroup]]:
    """The groups, but for those all of whose offsets are requested again."""
    once: list[RequestedGroup] = []
    all_of: set[str] = set()
    for group in request.body.groups:
        yield
        if group.topics is None:
            if group.group_id in all_of:
                continue
            all_of.add(group.group_id)
        once.append(RequestedGroup(group.group_id, group.topics, *_member(request, group)))
    return once


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
) -> Steps[GroupAnswer]:
    if error:
        topics = []
        if request.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
            named = yield from _requested_topics(context, request, requested.topics or [])
            topics = [
                (topic, [(index, NOTHING_COMMITTED, error) for index in topic.partitions])
                for topic in named
            ]
        return GroupAnswer(requested.group_id, error, topics)
    if requested.topics is None:
        named = yield from _all_topics(context, request, offsets)
    else:
        named = yield from _requested_topics(context, request, requested.topics)
    require_stable = request.body.require_stable
    answer = GroupAnswer(requested.group_id, ErrorCode.NONE, [])
    for topic in named:
        positions = []
        for index in topic.partitions:
            positions.append(_position(offsets, topic, index, require_stable))
            yield
        answer.topics.append((topic, positions))
    return answer


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
) -> Steps[list[RequestedTopic]]:
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
        yield
    return requested


def _all_topics(
    context: HandlerContext, request: Request[messages.OffsetFetchRequest], offsets: GroupOffsets
) -> Steps[list[RequestedTopic]]:
    """All topics that the group committed for and the client may know of."""
    found = []
    for name, partitions in list(offsets.topics()):
        if context.authorize(request, "DESCRIBE", "TOPIC", name):
            topic_id = context.metadata_cache.topic_id(name) or ZERO_UUID
            found.append(RequestedTopic(name, topic_id, list(partitions), ErrorCode.NONE))
        yield
    return found


def _answer(
    context: HandlerContext,
    request: Request[messages.OffsetFetchRequest],
    requested: Sequence[RequestedGroup],
    found: Mapping[int, tuple[ErrorCode, GroupOffsets]],
) -> Steps[messages.OffsetFetchResponse]:
    response = messages.OffsetFetchResponse
    groups = []
    for index, group in enumerate(requested):
        answer = yield from _group_answer(context, request, group, *found[index])
        if request.api_version < FIRST_VERSION_WITH_GROUPS:
            only = yield from _only_response(answer)
            return only
        in_response = yield from _group_response(answer)
        groups.append(in_response)
        yield
    return response(groups=groups)


def _partition(response: Callable[..., PartitionT], answered: Answered) -> PartitionT:
    """A partition's answer, in a type that versions with groups or those without have for it."""
    index, position, error = answered
    return response(
        partition_index=index,
        committed_offset=position.offset,
        committed_leader_epoch=position.leader_epoch,
        metadata=position.metadata,
        error_code=error,
    )


def _only_response(group: GroupAnswer) -> Steps[messages.OffsetFetchResponse]:
    """The answer to a request for one group, as versions without groups have it."""
    response = messages.OffsetFetchResponse
    answer = response(error_code=group.error)
    for topic, partitions in group.topics:
        of_topic = response.OffsetFetchResponseTopic(name=topic.name)
        make = partial(_partition, response.OffsetFetchResponsePartition)
        of_topic.partitions = yield from map_in_steps(make, partitions)
        answer.topics.append(of_topic)
    return answer


def _group_response(
    group: GroupAnswer,
) -> Steps[messages.OffsetFetchResponse.OffsetFetchResponseGroup]:
    response = messages.OffsetFetchResponse
    in_response = response.OffsetFetchResponseGroup(group_id=group.group_id, error_code=group.error)
    for topic, partitions in group.topics:
        of_topic = response.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
        make = partial(_partition, response.OffsetFetchResponsePartitions)
        of_topic.partitions = yield from map_in_steps(make, partitions)
        in_response.topics.append(of_topic)
    return in_response
