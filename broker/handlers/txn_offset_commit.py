"""TxnOffsetCommit (28), versions 0-5: keep how far a group has read, as part of a transaction.

Behaviour: each partition succeeds or fails on its own; what is kept is a transactional record of
`__consumer_offsets`. The positions count once the transaction is committed, until then they are
pending, and readers that require stable offsets get an error. The transaction must know of the
group's partition of `__consumer_offsets`, which its coordinator verifies (KIP-890).
Version notes: 2 has leader epochs and knows COORDINATOR_LOAD_IN_PROGRESS; 3 names the member and
its generation, which fence zombies (KIP-447); 4 knows TRANSACTION_ABORTABLE; 5 needs no
AddOffsetsToTxn before it.
Departures from Kafka: a commit too large for one batch is answered as OffsetCommit does; where
the transaction before is not over yet, version 5 waits as long as Produce does before it says
CONCURRENT_TRANSACTIONS, which Kafka says at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import CONSUMER_OFFSETS
from ...common.sentinels import NO_SEQUENCE, ZERO_UUID
from ...common.topic_partition import TopicPartition
from ...coordinator.append_errors import commit_error
from ...coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from ...coordinator.log import AppendInTransaction
from ...protocol import messages
from ...runtime.steps import Steps
from ..interbroker.transaction_verification import Guards, PartitionErrors, WriterInTransaction
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

FIRST_VERSION_THAT_KNOWS_LOADING = 2
FIRST_VERSION_THAT_KNOWS_ABORTABLE = 4
FIRST_VERSION_THAT_ADDS_PARTITIONS = 5

Place: TypeAlias = "messages.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition"
"""Where a partition's error goes in the response."""


@in_steps
def handle_txn_offset_commit(
    context: HandlerContext, request: Request[messages.TxnOffsetCommitRequest]
) -> Steps[messages.TxnOffsetCommitResponse | Parked]:
    """Have the transaction verified, then commit; the answer comes when it is stored."""
    body = request.body
    refusal = ErrorCode.NONE
    if not context.authorize(request, "WRITE", "TRANSACTIONAL_ID", body.transactional_id):
        refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not context.authorize(request, "READ", "GROUP", body.group_id):
        refusal = ErrorCode.GROUP_AUTHORIZATION_FAILED
    response, commits, places = yield from _resolve(context, request, refusal)

    def respond(errors: Sequence[ErrorCode]) -> None:
        for place, error in zip(places, errors, strict=True):
            place.error_code = _client_error(request.api_version, error)
        request.answer(response)

    def refuse(error: ErrorCode) -> None:
        respond([error] * len(commits))

    if not commits:
        return response
    coordinator = context.coordinators.group
    unverified = AppendInTransaction(body.producer_id, body.producer_epoch, None)
    commit = _commit_request(body, commits, unverified)
    try:
        coordinator.require_coordinated(body.group_id)
        encoded = yield from coordinator.encode_commits(commit)
    except KafkaError as failure:
        refuse(failure.code)
        return PARKED
    offsets_partition = TopicPartition(CONSUMER_OFFSETS, coordinator.partition_for(body.group_id))

    def verified(errors: PartitionErrors, guards: Guards) -> None:
        error = errors.get(offsets_partition)
        if error:
            refuse(_verification_error(error))
            return
        transaction = unverified._replace(guard=guards.get(offsets_partition))
        try:
            coordinator.commit_offsets(commit._replace(transaction=transaction), respond, encoded)
        except KafkaError as failure:
            refuse(failure.code)

    yield from context.coordinators.transaction_verifier.verify(
        WriterInTransaction(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            request.api_version >= FIRST_VERSION_THAT_ADDS_PARTITIONS,
            request.api_version >= FIRST_VERSION_THAT_KNOWS_ABORTABLE,
        ),
        {offsets_partition: NO_SEQUENCE},
        verified,
    )
    return PARKED


def _commit_request(
    body: messages.TxnOffsetCommitRequest,
    commits: Sequence[PartitionCommit],
    transaction: AppendInTransaction,
) -> CommitRequest:
    return CommitRequest(
        body.group_id,
        body.generation_id,
        body.member_id,
        body.group_instance_id,
        commits,
        transaction=transaction,
    )


def _verification_error(error: ErrorCode) -> ErrorCode:
    """The error for a coordinator that cannot be reached: the client is to send it again."""
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return commit_error(error)


def _client_error(version: int, error: ErrorCode) -> ErrorCode:
    """The error in words that the version knows: the first clients fail on the one of loading."""
    if (
        error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        and version < FIRST_VERSION_THAT_KNOWS_LOADING
    ):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def _resolve(
    context: HandlerContext, request: Request[messages.TxnOffsetCommitRequest], refusal: ErrorCode
) -> Steps[tuple[messages.TxnOffsetCommitResponse, list[PartitionCommit], list[Place]]]:
    """The response with all that is refused already, and the commits left with their places."""
    response = messages.TxnOffsetCommitResponse
    cache = context.metadata_cache
    commits: list[PartitionCommit] = []
    places: list[Place] = []
    topics = []
    for topic in request.body.topics:
        topic_error = refusal
        topic_id = cache.topic_id(topic.name) or ZERO_UUID
        if not topic_error and not context.authorize(request, "READ", "TOPIC", topic.name):
            topic_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partitions = []
        for requested in topic.partitions:
            yield
            index = requested.partition_index
            error = topic_error
            if not error and not cache.contains_partition(topic.name, index):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            place = response.TxnOffsetCommitResponsePartition(
                partition_index=index, error_code=error
            )
            partitions.append(place)
            if not error:
                places.append(place)
                commits.append(
                    PartitionCommit(
                        topic.name,
                        index,
                        requested.committed_offset,
                        requested.committed_leader_epoch,
                        requested.committed_metadata or "",
                        topic_id,
                    )
                )
        topics.append(response.TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    return response(topics=topics), commits, places
