"""What ends: offsets that are deleted or expire, groups with nothing left.

Ends are tombstones in the log first; memory follows when they are on enough replicas.
Source: Kafka's OffsetMetadataManager and GroupCoordinatorShard, KIP-211 (expiry).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...common.errors import ErrorCode
from ...common.sentinels import NO_TIMESTAMP
from ..append_errors import group_error
from ..log import CoordinatorRecord
from .classic.group import Group
from .classic.states import GroupState
from .consumer.group import ConsumerGroup
from .consumer.records import records as consumer_records
from .consumer.states import ConsumerGroupState
from .offsets.offsets import NO_EXPIRY, OffsetAndMetadata
from .records import group_tombstone, offset_tombstone
from .runtime import GroupRuntime

TOMBSTONES_PER_APPEND_MAX = 1_000
"""A batch of tombstones stays far below the longest batch that a log takes."""

AnyGroup = Group | ConsumerGroup

ErrorCallback = Callable[[ErrorCode], None]


class Removing:
    """Deletes offsets and groups.

    Args:
        runtime: settings, time and the log.
        on_group_gone: called with a group of which nothing is left.
    """

    def __init__(self, runtime: GroupRuntime, on_group_gone: Callable[[AnyGroup], None]) -> None:
        self._runtime = runtime
        self._on_group_gone = on_group_gone

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
                    elif is_removable(group):
                        self._on_group_gone(group)
            removed(group_error(error))

        self._runtime.append(group.partition, records, appended)

    def expire(self, group: AnyGroup) -> None:
        """Delete what is older than its retention, and the group if it is empty then.

        Should the append fail, the next round tries again.
        """
        expired = self.expired_partitions(group)
        with_group = (
            _is_empty(group)
            and len(expired) == len(group.offsets)
            and not group.offsets.has_open_transactions
        )
        self.remove(group, expired, _ignore, with_group=with_group)

    def expired_partitions(self, group: AnyGroup) -> list[tuple[str, int]]:
        """The partitions whose committed offsets are past their retention.

        Counted from the commit for consumers without a group and for topics that a stable
        group of consumers no longer reads; from the moment the group became empty for groups
        without members. Other groups keep everything. In a consumer group it is the commit
        that counts, whatever state the group is in.
        """
        empty_since_ms = NO_TIMESTAMP
        if isinstance(group, Group):
            if not _may_expire(group):
                return []
            if group.state is GroupState.EMPTY and group.protocol_type is not None:
                empty_since_ms = group.state_timestamp_ms
        now_ms = self._runtime.clock.now_ms()
        return [
            (topic, partition)
            for topic, partition, position in group.offsets
            if self._is_expired(position, empty_since_ms, now_ms)
            and not group.is_subscribed_to(topic)
            and not group.offsets.is_pending(topic, partition)
        ]

    def _is_expired(self, position: OffsetAndMetadata, empty_since_ms: int, now_ms: int) -> bool:
        if position.expire_timestamp_ms != NO_EXPIRY:
            return now_ms >= position.expire_timestamp_ms
        since_ms = position.commit_timestamp_ms
        if empty_since_ms != NO_TIMESTAMP:
            since_ms = empty_since_ms
        return now_ms - since_ms >= self._runtime.settings.offsets_retention_ms


def is_removable(group: AnyGroup) -> bool:
    """Whether a group can go: nobody and nothing came to it since its end was decided."""
    return _is_empty(group) and not group.offsets


def _is_empty(group: AnyGroup) -> bool:
    """Whether nobody is in the group or on the way into it, and no commit is on its way."""
    if not group.in_flight.is_settled:
        return False
    if isinstance(group, ConsumerGroup):
        return group.state is ConsumerGroupState.EMPTY and group.writes.is_settled
    return group.state is GroupState.EMPTY and not group.pending_members


def _may_expire(group: Group) -> bool:
    """Whether a classic group's offsets may expire at all in its state."""
    return (
        group.protocol_type is None
        or group.state is GroupState.EMPTY
        or (
            group.state is GroupState.STABLE
            and group.uses_consumer_protocol
            and group.subscribed_topics is not None
        )
    )


def _group_end(group: AnyGroup) -> list[CoordinatorRecord]:
    if isinstance(group, ConsumerGroup):
        return consumer_records.group_tombstones(group.group_id, group.members, group.expressions)
    return [group_tombstone(group.group_id)]


def _ignore(_error: ErrorCode) -> None:
    """Nobody asked for it, so nobody is told."""
