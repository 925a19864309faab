"""OffsetMetadataManager: offsets committed, deleted and expired, and groups with nothing left.

A position is seen by OffsetFetch once its record is on enough replicas, and the commit is
answered then. Ends are tombstones in the log first; memory follows when they are on enough
replicas. Source: Kafka's OffsetMetadataManager, GroupCoordinatorShard and
ClassicGroup.validateOffsetCommit; KIP-211 (expiry).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_EPOCH, NO_TIMESTAMP, ZERO_UUID
from ...protocol.records.builder import EncodedRecords
from ...runtime.steps import Steps, count_items, in_batches
from ...runtime.timers import Timer
from ..append_errors import commit_error, group_error
from ..log import AppendInTransaction, CoordinatorRecord
from .classic.group import ClassicGroup
from .classic.messages import UNKNOWN_MEMBER_ID
from .classic.sessions import Sessions
from .classic.states import ClassicGroupState
from .consumer import records as consumer_records
from .consumer.checks import check_commit
from .consumer.group import ConsumerGroup
from .consumer.states import ConsumerGroupState
from .offsets import NO_EXPIRY, AppendedAt, OffsetAndMetadata, Positions
from .records import fits_string, group_tombstone, offset_record, offset_tombstone
from .runtime import GroupRuntime
from .shards import AnyGroup, GroupShards
from .streams import records as streams_records
from .streams.group import StreamsGroup
from .streams.heartbeat import check_commit as check_streams_commit
from .streams.states import StreamsGroupState

DEFAULT_RETENTION = -1
"""The retention of a commit that leaves it to the broker."""

TOMBSTONES_PER_APPEND_MAX = 1_000
"""A batch of tombstones stays far below the longest batch that a log takes."""

OFFSETS_PER_PIECE = 200
"""So many are deleted at a time where others have their turns in between."""


class PartitionCommit(NamedTuple):
    """One position that a client wants to keep."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: bytes = ZERO_UUID


class CommitRequest(NamedTuple):
    """An OffsetCommit or TxnOffsetCommit request.

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


class EncodedCommits(NamedTuple):
    """Commits ready to be appended.

    Attributes:
        records: those that can be stored.
        positions: what they say.
        appended_at: of all of them, to be set with the append.
        errors: of each commit, NONE where it can be stored.
    """

    records: EncodedRecords
    positions: Positions
    appended_at: AppendedAt
    errors: list[ErrorCode]


CommitCallback = Callable[[Sequence[ErrorCode]], None]
"""Called once with the error of each commit, in the request's order."""

ErrorCallback = Callable[[ErrorCode], None]


class OffsetMetadataManager:
    """The committed offsets of all groups.

    Args:
        runtime: settings, time and the log.
        shards: the groups.
        sessions: a commit keeps its member's session alive.
    """

    def __init__(self, runtime: GroupRuntime, shards: GroupShards, sessions: Sessions) -> None:
        self._runtime = runtime
        self._shards = shards
        self._sessions = sessions
        self._timer: Timer | None = None

    # -- OffsetCommit and TxnOffsetCommit -------------------------------------------------

    def encode(
        self,
        group_id: str,
        commits: Sequence[PartitionCommit],
        retention_ms: int,
        *,
        is_transactional: bool,
    ) -> Steps[EncodedCommits]:
        """Make the records of commits, before anything is decided: that can be done in steps.

        Raises:
            KafkaError: a string is longer than a record can hold.
        """
        now_ms = self._runtime.clock.now_ms()
        expire_timestamp_ms = NO_EXPIRY
        if retention_ms != DEFAULT_RETENTION:
            expire_timestamp_ms = now_ms + retention_ms
        encoded = EncodedCommits(
            EncodedRecords(), {}, AppendedAt(), [ErrorCode.NONE] * len(commits)
        )
        for index, commit in enumerate(commits):
            if index:  # most commits are of one partition, and one step
                yield
            if self._is_too_large(commit.metadata):
                encoded.errors[index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            position = OffsetAndMetadata(
                commit.offset,
                commit.leader_epoch,
                commit.metadata,
                now_ms,
                expire_timestamp_ms,
                # Kafka keeps no topic id of what a transaction commits.
                ZERO_UUID if is_transactional else commit.topic_id,
                encoded.appended_at,
            )
            record = offset_record(group_id, commit.topic, commit.partition, position)
            encoded.records.append((record.key, record.value, now_ms, ()))
            encoded.positions[commit.topic, commit.partition] = position
        return encoded

    def commit(
        self,
        group: AnyGroup,
        request: CommitRequest,
        encoded: EncodedCommits,
        respond: CommitCallback,
    ) -> None:
        """Store positions; `respond` is called once they can be seen, or could not be stored.

        Raises:
            KafkaError: the client may not commit for this group, or not now.
        """
        if isinstance(group, ConsumerGroup | StreamsGroup):
            _check_epoch(group, request)
        elif request.transaction is not None:
            _check_in_transaction(group, request)
        else:
            _check_classic(group, request)
            if group.state in (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
                member = group.members.get(request.member_id)
                if member is not None:
                    self._sessions.extend(group, member)
        if encoded.records.count:
            self._append(group, encoded, respond, request.transaction)
        else:
            respond(encoded.errors)

    def _append(
        self,
        group: AnyGroup,
        encoded: EncodedCommits,
        respond: CommitCallback,
        transaction: AppendInTransaction | None,
    ) -> None:
        in_flight = group.in_flight
        offsets = group.offsets

        def appended(error: ErrorCode, base_offset: int) -> None:
            errors: Sequence[ErrorCode] = encoded.errors
            if error:
                answer = commit_error(error)
                errors = [own or answer for own in errors]
            else:
                encoded.appended_at.offset = base_offset
                if transaction is None:
                    offsets.put_all(encoded.positions)
                else:
                    offsets.put_all_pending(transaction.producer_id, encoded.positions)
            respond(errors)
            in_flight.finish()

        in_flight.begin()
        if transaction is not None:
            self._shards.note_pending(group, transaction.producer_id)
        self._runtime.append(group.partition, encoded.records, appended, transaction)

    def _is_too_large(self, metadata: str) -> bool:
        return len(metadata) > self._runtime.settings.offset_metadata_max_bytes or not fits_string(
            metadata
        )

    # -- deletion -------------------------------------------------------------------------

    def remove(
        self,
        group: AnyGroup,
        partitions: Iterable[tuple[str, int]],
        respond: ErrorCallback,
        *,
        with_group: bool = False,
    ) -> None:
        """Delete committed offsets, and the group itself where nothing else is left of it.

        `respond` is called once, with the first error if there was any.
        """
        entries: list[tuple[str, int] | None] = list(partitions)
        if with_group:
            entries.append(None)
        chunks = [
            entries[start : start + TOMBSTONES_PER_APPEND_MAX]
            for start in range(0, len(entries), TOMBSTONES_PER_APPEND_MAX)
        ]
        if not chunks:
            respond(ErrorCode.NONE)
            return
        outcomes: list[ErrorCode] = []

        def removed(error: ErrorCode) -> None:
            outcomes.append(error)
            if len(outcomes) == len(chunks):
                respond(next(filter(None, outcomes), ErrorCode.NONE))

        for chunk in chunks:
            self._append_tombstones(group, chunk, removed)

    def _append_tombstones(
        self, group: AnyGroup, chunk: Sequence[tuple[str, int] | None], removed: ErrorCallback
    ) -> None:
        records: list[CoordinatorRecord] = []
        for entry in chunk:
            if entry is not None:
                records.append(offset_tombstone(group.group_id, *entry))
            else:
                records += _group_end(group)

        def appended(error: ErrorCode, _offset: int) -> None:
            if not error:
                for entry in chunk:
                    if entry is not None:
                        group.offsets.remove(*entry)
                    elif _is_removable(group):
                        self._shards.forget_any(group)
            removed(group_error(error))

        self._runtime.append(group.partition, records, appended)

    # -- expiry (KIP-211) -----------------------------------------------------------------

    def start(self) -> None:
        """Begin a round through all groups after each offsets.retention.check.interval.ms."""
        self._timer = self._runtime.schedule(
            self._runtime.settings.offsets_retention_check_interval_ms,
            self._begin_round,
        )

    def close(self) -> None:
        """Begin no round any more; the one that is under way finds no groups."""
        if self._timer is not None:
            self._timer.cancel()

    def _begin_round(self) -> None:
        self.start()  # what comes next is arranged before anything can go wrong
        self._runtime.run_in_steps(self.expire_all())

    def expire_all(self) -> Steps[None]:
        """A whole round."""
        unflushed = 0
        for group in self._shards.all_groups():
            yield
            unflushed += yield from self._expire(group)
            if unflushed >= OFFSETS_PER_PIECE:
                unflushed = 0
                self._runtime.log.flush()

    def _expire(self, group: AnyGroup) -> Steps[int]:
        """Delete what is older than its retention, and the group if it is empty then.

        Should an append fail, the next round tries again.

        Returns:
            How many tombstones were appended and not flushed.
        """
        expired = yield from self._find_expired(group)
        appending = 0

        def ended(count: int, _error: ErrorCode) -> None:
            nonlocal appending
            appending -= count

        pieces = list(in_batches(expired, OFFSETS_PER_PIECE)) or [[]]
        for number, piece in enumerate(pieces, start=1):
            if self._shards.find_known(group.group_id) is not group:  # gone meanwhile
                return 0
            is_last = number == len(pieces)
            offsets = group.offsets
            partitions = [
                (topic, partition)
                for topic, partition, position in piece  # not committed again meanwhile
                if offsets.get(topic, partition) is position
                and not offsets.is_pending(topic, partition)
            ]
            with_group = (
                is_last
                and _is_empty(group)
                and len(partitions) + appending == len(offsets)
                and not offsets.has_open_transactions
            )
            appending += len(partitions)
            self.remove(group, partitions, partial(ended, len(partitions)), with_group=with_group)
            count = len(partitions) + with_group
            yield from count_items(count)
            if is_last:
                return count
            self._runtime.log.flush()  # its end is as long as its beginning
        return 0

    def _find_expired(self, group: AnyGroup) -> Steps[list[tuple[str, int, OffsetAndMetadata]]]:
        """The partitions whose committed offsets are past their retention, and these.

        Counted from the commit for consumers without a group and for topics that a stable
        group of consumers no longer reads; from the moment the group became empty for groups
        without members. Other groups keep everything. In a consumer group it is the commit
        that counts, whatever state the group is in.
        """
        empty_since_ms = NO_TIMESTAMP
        if isinstance(group, ClassicGroup):
            if not _may_expire(group):
                return []
            if group.state is ClassicGroupState.EMPTY and group.protocol_type is not None:
                empty_since_ms = group.state_timestamp_ms
        now_ms = self._runtime.clock.now_ms()
        found = []
        for topic, partition, position in list(group.offsets):
            yield
            if (
                self._is_expired(position, empty_since_ms, now_ms)
                and not group.is_subscribed_to(topic)
                and not group.offsets.is_pending(topic, partition)
            ):
                found.append((topic, partition, position))
        return found

    def _is_expired(self, position: OffsetAndMetadata, empty_since_ms: int, now_ms: int) -> bool:
        if position.expire_timestamp_ms != NO_EXPIRY:
            return now_ms >= position.expire_timestamp_ms
        since_ms = position.commit_timestamp_ms
        if empty_since_ms != NO_TIMESTAMP:
            since_ms = empty_since_ms
        return now_ms - since_ms >= self._runtime.settings.offsets_retention_ms


def _check_classic(group: ClassicGroup, request: CommitRequest) -> None:
    """Refuse a commit by the wrong client, of the wrong generation or at the wrong time."""
    is_empty = group.state is ClassicGroupState.EMPTY
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


def _check_in_transaction(group: ClassicGroup, request: CommitRequest) -> None:
    """Refuse a transaction's commit by the wrong client or of the wrong generation (KIP-447).

    The group may be rebalancing, and a producer need not say for whom it commits.
    """
    is_of_nobody = (
        request.generation_id < 0
        and request.member_id == UNKNOWN_MEMBER_ID
        and request.group_instance_id is None
    )
    if is_of_nobody or (group.state is ClassicGroupState.EMPTY and request.generation_id < 0):
        return
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _check_epoch(group: ConsumerGroup | StreamsGroup, request: CommitRequest) -> None:
    """Refuse a commit for a group that goes by epochs, by the wrong client or of the wrong one."""
    try:
        if isinstance(group, StreamsGroup):
            check_streams_commit(
                group,
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                request.api_version,
                ((commit.topic, commit.partition) for commit in request.commits),
                is_transactional=request.transaction is not None,
            )
            return
        check_commit(
            group,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            request.api_version,
            ((commit.topic_id, commit.partition) for commit in request.commits),
            is_transactional=request.transaction is not None,
        )
    except KafkaError as refusal:
        if request.transaction is not None and refusal.code is ErrorCode.STALE_MEMBER_EPOCH:
            # TxnOffsetCommit has no word of its own for it.
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, refusal.message) from None
        raise


def _is_removable(group: AnyGroup) -> bool:
    """Whether a group can go: nobody and nothing came to it since its end was decided."""
    return _is_empty(group) and not group.offsets


def _is_empty(group: AnyGroup) -> bool:
    """Whether nobody is in the group or on the way into it, and no commit is on its way."""
    if not group.in_flight.is_settled:
        return False
    if isinstance(group, ConsumerGroup):
        return group.state is ConsumerGroupState.EMPTY and group.writes.is_settled
    if isinstance(group, StreamsGroup):
        return group.state is StreamsGroupState.EMPTY and group.writes.is_settled
    return group.state is ClassicGroupState.EMPTY and not group.pending_members


def _may_expire(group: ClassicGroup) -> bool:
    """Whether a classic group's offsets may expire at all in its state."""
    return (
        group.protocol_type is None
        or group.state is ClassicGroupState.EMPTY
        or (
            group.state is ClassicGroupState.STABLE
            and group.uses_consumer_protocol
            and group.subscribed_topics is not None
        )
    )


def _group_end(group: AnyGroup) -> list[CoordinatorRecord]:
    if isinstance(group, ConsumerGroup):
        return consumer_records.group_tombstones(group.group_id, group.members, group.expressions)
    if isinstance(group, StreamsGroup):
        return streams_records.group_tombstones(group.group_id)
    return [group_tombstone(group.group_id)]
