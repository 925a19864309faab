"""OffsetCommit: who may commit, what is stored, and when it is seen.

A position is seen by OffsetFetch once its record is on enough replicas, and the commit is
answered then. Source: Kafka's OffsetMetadataManager and ClassicGroup.validateOffsetCommit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....common.errors import ErrorCode, KafkaError
from ....common.sentinels import NO_EPOCH, ZERO_UUID
from ...append_errors import commit_error
from ...log import AppendInTransaction, CoordinatorRecord
from ..answers import UNKNOWN_MEMBER_ID
from ..classic.group import Group
from ..classic.sessions import Sessions
from ..classic.states import GroupState
from ..consumer.commit_rules import check_commit
from ..consumer.group import ConsumerGroup
from ..records import fits_string, offset_record
from ..runtime import GroupRuntime
from .offsets import NO_EXPIRY, OffsetAndMetadata

DEFAULT_RETENTION = -1
"""The retention of a commit that leaves it to the broker."""


class PartitionCommit(NamedTuple):
    """One position that a client wants to keep."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: bytes = ZERO_UUID


class CommitRequest(NamedTuple):
    """What an OffsetCommit asks.

    Attributes:
        retention_ms: how long the positions are kept, -1 for the broker's setting (v2 to v4).
        unknown_group_error: what a member of a group that is not known gets: v9 on it is
            GROUP_ID_NOT_FOUND, before that ILLEGAL_GENERATION.
        api_version: of OffsetCommit; members of a consumer group speak 9 at least.
        transaction: of TxnOffsetCommit: the positions count once it is committed.
    """

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    commits: Sequence[PartitionCommit]
    retention_ms: int = DEFAULT_RETENTION
    unknown_group_error: ErrorCode = ErrorCode.ILLEGAL_GENERATION
    api_version: int = 10
    transaction: AppendInTransaction | None = None


CommitCallback = Callable[[Sequence[ErrorCode]], None]
"""Called once with the error of each commit, in the request's order."""


NotePending = Callable[[Group | ConsumerGroup, int], None]
"""Told of a group for which the transaction of a producer id has an offset."""


class Committing:
    """The rules of OffsetCommit and TxnOffsetCommit.

    Args:
        runtime: settings, time and the log.
        sessions: a commit keeps its member's session alive.
        note_pending: keeps in mind whom the end of a transaction concerns.
    """

    def __init__(
        self, runtime: GroupRuntime, sessions: Sessions, note_pending: NotePending
    ) -> None:
        self._runtime = runtime
        self._sessions = sessions
        self._note_pending = note_pending

    def commit(
        self, group: Group | ConsumerGroup, request: CommitRequest, respond: CommitCallback
    ) -> None:
        """Store positions; `respond` is called once they can be seen, or could not be stored.

        Raises:
            KafkaError: the client may not commit for this group, or not now.
        """
        if isinstance(group, ConsumerGroup):
            _check_consumer(group, request)
        elif request.transaction is not None:
            _check_in_transaction(group, request)
        else:
            self._check(group, request)
            if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
                member = group.members.get(request.member_id)
                if member is not None:
                    self._sessions.extend(group, member)
        now_ms = self._runtime.clock.now_ms()
        expire_timestamp_ms = NO_EXPIRY
        if request.retention_ms != DEFAULT_RETENTION:
            expire_timestamp_ms = now_ms + request.retention_ms
        group_id = group.group_id
        errors = [ErrorCode.NONE] * len(request.commits)
        records: list[CoordinatorRecord] = []
        stored: list[tuple[int, PartitionCommit, OffsetAndMetadata]] = []
        for index, commit in enumerate(request.commits):
            if self._is_too_large(commit.metadata):
                errors[index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            position = OffsetAndMetadata(
                commit.offset,
                commit.leader_epoch,
                commit.metadata,
                now_ms,
                expire_timestamp_ms,
                # Kafka keeps no topic id of what a transaction commits.
                commit.topic_id if request.transaction is None else ZERO_UUID,
            )
            records.append(offset_record(group_id, commit.topic, commit.partition, position))
            stored.append((index, commit, position))
        if records:
            self._append(group, records, stored, errors, respond, request.transaction)
        else:
            respond(errors)

    def _append(
        self,
        group: Group | ConsumerGroup,
        records: Sequence[CoordinatorRecord],
        stored: Sequence[tuple[int, PartitionCommit, OffsetAndMetadata]],
        errors: list[ErrorCode],
        respond: CommitCallback,
        transaction: AppendInTransaction | None,
    ) -> None:
        in_flight = group.in_flight
        offsets = group.offsets

        def appended(error: ErrorCode, base_offset: int) -> None:
            if error:
                answer = commit_error(error)
                for index, _, _ in stored:
                    errors[index] = answer
            else:
                for number, (_, commit, position) in enumerate(stored):
                    topic, partition = commit.topic, commit.partition
                    position = OffsetAndMetadata(*position[:-1], base_offset + number)
                    if transaction is None:
                        offsets.put(topic, partition, position)
                    else:
                        offsets.put_pending(transaction.producer_id, topic, partition, position)
            respond(errors)
            in_flight.finish()

        in_flight.begin()
        if transaction is not None:
            self._note_pending(group, transaction.producer_id)
        self._runtime.append(group.partition, records, appended, transaction)

    def _is_too_large(self, metadata: str) -> bool:
        return len(metadata) > self._runtime.settings.offset_metadata_max_bytes or not fits_string(
            metadata
        )

    def _check(self, group: Group, request: CommitRequest) -> None:
        """Refuse a commit by the wrong client, of the wrong generation or at the wrong time."""
        is_empty = group.state is GroupState.EMPTY
        if is_empty and request.generation_id < 0:
            return  # from an admin client, or a consumer that manages its partitions itself
        if (
            request.generation_id < 0
            and request.member_id == UNKNOWN_MEMBER_ID
            and request.group_instance_id is None
        ):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.answers.commit:
            raise KafkaError(group.answers.commit)


def _check_in_transaction(group: Group, request: CommitRequest) -> None:
    """Refuse a transaction's commit by the wrong client or of the wrong generation (KIP-447).

    The group may be rebalancing, and a producer need not say for whom it commits.
    """
    is_of_nobody = (
        request.generation_id < 0
        and request.member_id == UNKNOWN_MEMBER_ID
        and request.group_instance_id is None
    )
    if is_of_nobody or (group.state is GroupState.EMPTY and request.generation_id < 0):
        return
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _check_consumer(group: ConsumerGroup, request: CommitRequest) -> None:
    """Refuse a commit for a consumer group by the wrong client or of the wrong epoch."""
    try:
        epochs = check_commit(
            group,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            request.api_version,
            is_transactional=request.transaction is not None,
        )
        epochs.check((commit.topic_id, commit.partition) for commit in request.commits)
    except KafkaError as refusal:
        if request.transaction is not None and refusal.code is ErrorCode.STALE_MEMBER_EPOCH:
            # TxnOffsetCommit has no word of its own for it.
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, refusal.message) from None
        raise
