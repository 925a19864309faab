"""OffsetCommit (8), versions 2-10: keep how far a group has read.

Behaviour: each partition succeeds or fails on its own; what is kept is a record of
`__consumer_offsets`, and the answer comes when all in-sync replicas have it. Members
commit for their generation and keep their session by it; without member and generation
anybody may commit for a group that has no members.
Version notes: 2 to 4 may ask for a retention of their own; 6 has leader epochs (KIP-320);
7 names static members; 9 answers GROUP_ID_NOT_FOUND where earlier versions answer
ILLEGAL_GENERATION, and takes member epochs of consumer groups (STALE_MEMBER_EPOCH); 10 names
topics by id.
Departures from Kafka: a commit too large for one batch is answered with
INVALID_COMMIT_OFFSET_SIZE, the code that the protocol has for it, where Kafka 4 says
UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import ZERO_UUID
from ...coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

FIRST_VERSION_THAT_SAYS_UNKNOWN_GROUP = 9
FIRST_OFFSETS_VERSION_WITH_TOPIC_IDS = 10

Place: TypeAlias = "messages.OffsetCommitResponse.OffsetCommitResponsePartition"
"""Where a partition's error goes in the response."""


@in_steps
def handle_offset_commit(
    context: HandlerContext, request: Request[messages.OffsetCommitRequest]
) -> Steps[messages.OffsetCommitResponse | Parked]:
    """Commit what may be committed; the answer comes when it is stored."""
    body = request.body
    may_commit = context.authorize(request, "READ", "GROUP", body.group_id)
    refusal = ErrorCode.NONE if may_commit else ErrorCode.GROUP_AUTHORIZATION_FAILED
    response, commits, partitions = yield from _resolve(context, request, refusal)

    def respond(errors: Sequence[ErrorCode]) -> None:
        for partition, error in zip(partitions, errors, strict=True):
            partition.error_code = error
        request.answer(response)

    if not commits:
        return response
    coordinator = context.coordinators.group
    commit = _commit_request(request, commits)
    try:
        encoded = yield from coordinator.encode_commits(commit)
        coordinator.commit_offsets(commit, respond, encoded)
    except KafkaError as failure:
        respond([failure.code] * len(commits))
    return PARKED


def _commit_request(
    request: Request[messages.OffsetCommitRequest], commits: Sequence[PartitionCommit]
) -> CommitRequest:
    body = request.body
    return CommitRequest(
        body.group_id,
        body.generation_id_or_member_epoch,
        body.member_id,
        body.group_instance_id,
        commits,
        body.retention_time_ms,
        ErrorCode.GROUP_ID_NOT_FOUND
        if request.api_version >= FIRST_VERSION_THAT_SAYS_UNKNOWN_GROUP
        else ErrorCode.ILLEGAL_GENERATION,
        request.api_version,
    )


def _resolve(
    context: HandlerContext, request: Request[messages.OffsetCommitRequest], refusal: ErrorCode
) -> Steps[tuple[messages.OffsetCommitResponse, list[PartitionCommit], list[Place]]]:
    """The response with all that is refused already, and the commits left with their places."""
    response = messages.OffsetCommitResponse
    cache = context.metadata_cache
    commits: list[PartitionCommit] = []
    places: list[Place] = []
    topics: list[messages.OffsetCommitResponse.OffsetCommitResponseTopic] = []
    for topic in request.body.topics:
        if topics:  # most commits are of one topic, and one step
            yield
        name, topic_id, topic_error = _resolve_topic(context, request, topic, refusal)
        partitions = []
        for requested in topic.partitions:
            yield
            index = requested.partition_index
            error = refusal or topic_error
            if not error and not cache.contains_partition(name, index):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            place = response.OffsetCommitResponsePartition(partition_index=index, error_code=error)
            partitions.append(place)
            if not error:
                places.append(place)
                commits.append(
                    PartitionCommit(
                        name,
                        index,
                        requested.committed_offset,
                        requested.committed_leader_epoch,
                        requested.committed_metadata or "",
                        topic_id,
                    )
                )
        topics.append(
            response.OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return response(topics=topics), commits, places


def _resolve_topic(
    context: HandlerContext,
    request: Request[messages.OffsetCommitRequest],
    topic: messages.OffsetCommitRequest.OffsetCommitRequestTopic,
    refusal: ErrorCode,
) -> tuple[str, bytes, ErrorCode]:
    """A topic's name and id, and the error that all its partitions get, if any."""
    name = topic.name
    topic_id = ZERO_UUID
    if request.api_version >= FIRST_OFFSETS_VERSION_WITH_TOPIC_IDS:
        topic_id = topic.topic_id
        known = context.metadata_cache.topic_name(topic_id)
        if known is None:
            return name, topic_id, ErrorCode.UNKNOWN_TOPIC_ID
        name = known
    else:
        topic_id = context.metadata_cache.topic_id(name) or ZERO_UUID
    if not refusal and not context.authorize(request, "READ", "TOPIC", name):
        return name, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return name, topic_id, ErrorCode.NONE
