"""A group's committed offsets: OffsetCommit and OffsetFetch, each again while that may help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ....common.errors import ErrorCode, KafkaError
from ....common.sentinels import NO_EPOCH, NO_OFFSET
from ....protocol import messages
from ...client import KafkaClient
from ...error_kinds import RETRIABLE_ERRORS, error_name, error_of
from ...errors import DisconnectedError
from ..offsets import TopicPartition
from .coordinator import MOVED, GroupCoordinator
from .membership import GroupMetadata

TOPIC_IDS_FROM: Final = 10
"""From this version on both APIs name topics by their ids."""

STALE_EPOCH: Final = frozenset({ErrorCode.STALE_MEMBER_EPOCH})
"""The member's epoch has grown meanwhile: its next heartbeat tells."""


class OffsetAndMetadata(NamedTuple):
    """A committed offset.

    Attributes:
        offset: of the record to be read next.
        leader_epoch: of the record before it; -1 where it is not known.
        metadata: what the caller wants to remember with it.
    """

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""


class CommittedOffsets:
    """The offsets of one group.

    Args:
        client: is open, and stays so.
        coordinator: of the group.
        member: who this member is to the coordinator now.
        require_stable: wait for transactions that have yet to settle an offset (KIP-447).
    """

    def __init__(
        self,
        client: KafkaClient,
        coordinator: GroupCoordinator,
        member: Callable[[], GroupMetadata],
        *,
        require_stable: bool,
    ) -> None:
        self._client = client
        self._coordinator = coordinator
        self._member = member
        self._require_stable = require_stable

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int
    ) -> None:
        """Commit offsets.

        Args:
            offsets: by topic and partition.
            timeout_ms: for all attempts.

        Raises:
            KafkaError: the coordinator refused; ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
                REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID and STALE_MEMBER_EPOCH mean that the
                partitions may be another member's.
            ClientError: it could not be reached in time.
        """
        missing = dict(offsets)
        attempts = self._client.attempts(timeout_ms)
        while missing:
            failure: Exception | None = None
            member = self._member()
            request = _commit_request(member, missing)
            try:
                response = await self._coordinator.send(
                    request,
                    version_max=TOPIC_IDS_FROM - 1,
                    timeout_ms=max(attempts.remaining_ms, 1),
                )
            except DisconnectedError as disconnected:
                await attempts.pause(disconnected)
                continue
            for topic in response.topics:
                for answer in topic.partitions:
                    key = topic.name, answer.partition_index
                    error = _error(f"commit of {key[0]}-{key[1]}", answer.error_code)
                    if error is None:
                        missing.pop(key, None)
                    elif self._may_pass(error, member):
                        failure = error
                    else:
                        raise error
            if missing:
                await attempts.pause(failure or _no_answer("OffsetCommit", missing))

    async def fetch(
        self, partitions: Iterable[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets; partitions without one are left out.

        Raises:
            KafkaError: the coordinator refused.
            ClientError: it could not be reached in time.
        """
        requested = sorted(set(partitions))
        attempts = self._client.attempts(timeout_ms)
        while True:
            member = self._member()
            request = _fetch_request(member, requested, self._require_stable)
            try:
                response = await self._coordinator.send(
                    request,
                    version_max=TOPIC_IDS_FROM - 1,
                    timeout_ms=max(attempts.remaining_ms, 1),
                )
            except DisconnectedError as failure:
                await attempts.pause(failure)
                continue
            found, error = _read_offsets(response)
            if error is None:
                return found
            if not self._may_pass(error, member):
                raise error
            await attempts.pause(error)

    def _may_pass(self, error: KafkaError, member: GroupMetadata) -> bool:
        if error.code in MOVED:
            self._coordinator.moved()
        if error.code in STALE_EPOCH:
            return member.generation_id >= 0
        return error.code in RETRIABLE_ERRORS


def _commit_request(
    member: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> messages.OffsetCommitRequest:
    topics: dict[str, list[messages.OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
    for (name, index), each in offsets.items():
        topics.setdefault(name, []).append(
            messages.OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=each.offset,
                committed_leader_epoch=each.leader_epoch,
                committed_metadata=each.metadata,
            )
        )
    make = messages.OffsetCommitRequest.OffsetCommitRequestTopic
    return messages.OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation_id,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id if member.member_id else None,
        topics=[make(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _fetch_request(
    member: GroupMetadata, partitions: Iterable[TopicPartition], require_stable: bool
) -> messages.OffsetFetchRequest:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    make = messages.OffsetFetchRequest.OffsetFetchRequestTopics
    return messages.OffsetFetchRequest(
        groups=[
            messages.OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=member.group_id,
                member_id=member.member_id or None,
                member_epoch=member.generation_id,
                topics=[
                    make(name=name, partition_indexes=indexes) for name, indexes in topics.items()
                ],
            )
        ],
        require_stable=require_stable,
    )


def _read_offsets(
    response: Any,
) -> tuple[dict[TopicPartition, OffsetAndMetadata], KafkaError | None]:
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for group in response.groups:
        error = _error(f"offsets of group {group.group_id!r}", group.error_code)
        if error is not None:
            return found, error
        for topic in group.topics:
            for each in topic.partitions:
                key = topic.name, each.partition_index
                error = _error(f"offset of {key[0]}-{key[1]}", each.error_code)
                if error is not None:
                    return found, error
                if each.committed_offset != NO_OFFSET:
                    found[key] = OffsetAndMetadata(
                        each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                    )
    return found, None


def _error(what: str, code: int) -> KafkaError | None:
    return KafkaError(error_of(code), f"{what}: {error_name(code)}") if code else None


def _no_answer(api: str, partitions: Iterable[TopicPartition]) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"{api} was not answered for {sorted(partitions)}"
    )
