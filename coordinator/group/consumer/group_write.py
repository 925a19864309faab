"""One change of a group: records for the log, and the same at once in memory.

Each verb makes one `GroupWrite`, tells it what changes, and hands it to `Writer.submit`; or
takes all of it back when it has to refuse after all. The records are Kafka's, in its order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ....common.errors import ErrorCode, KafkaError
from ...append_errors import group_error
from ...log import CoordinatorRecord
from ..records import EncodedValue
from ..runtime import GroupRuntime
from . import records
from .group import NO_TARGET_EPOCH, ConsumerGroup
from .in_flight_writes import ImageT, InFlightWrite, InFlightWrites
from .member import ConsumerGroupMember, ResolvedExpression, TargetAssignment

logger = logging.getLogger(__name__)
LATE_LOOK_MS = 100
"""How often is looked whether replicas have caught up with a change that was late."""


class WrittenGroup(Protocol[ImageT]):
    """A group whose changes are written: a consumer group, or one of share consumers."""

    is_conversion_open: bool

    @property
    def group_id(self) -> str:
        """Its name."""

    @property
    def partition(self) -> int:
        """The partition of `__consumer_offsets` that keeps it."""

    @property
    def writes(self) -> InFlightWrites[ImageT]:
        """Those that are not replicated yet."""

    @property
    def is_dead(self) -> bool:
        """Whether nobody finds it here any more."""

    def image(self) -> ImageT:
        """What it holds now."""

    def restore(self, image: ImageT) -> None:
        """Hold again what it held before a write that failed."""

    def refresh_state(self) -> None:
        """Be in the state that what it holds says."""


GroupT = TypeVar("GroupT", bound=WrittenGroup[Any])  # of whatever image: it is only handed back
ValueT = TypeVar("ValueT")


def without(mapping: Mapping[str, ValueT], key: str) -> dict[str, ValueT]:
    """What an image holds, but for one member; images are replaced, not changed."""
    return {each: value for each, value in mapping.items() if each != key}


class Write(Generic[GroupT]):
    """What changes in one group, all or none of it.

    Args:
        group: is changed at once, by each of the verbs.
        encoded: see below.

    Attributes:
        encoded: values that may be written, encoded before.
        records: what the log gets.
        before: what the group held before the first change; None: there is none.
        after_submit: called as soon as the log has them to write, if set.
    """

    __slots__ = ("after_submit", "before", "encoded", "group", "records")

    def __init__(self, group: GroupT, encoded: Sequence[EncodedValue] = ()) -> None:
        self.group = group
        self.encoded = encoded
        self.records: list[CoordinatorRecord] = []
        self.before: Any = None
        self.after_submit: Callable[[], None] | None = None

    def take_back(self) -> None:
        """Let the group be what it was before."""
        if self.before is not None:
            self.group.restore(self.before)
            self.before = None
            self.records.clear()

    def add(self, record: CoordinatorRecord) -> None:
        """A record that changes nothing of what the group holds, or is applied by the caller."""
        if self.before is None:
            self.before = self.group.image()
        self.records.append(record)

    def encoded_of(self, what: object) -> bytes | None:
        """The value that says something, if it was encoded before."""
        return next((each.value for each in self.encoded if each.of == what), None)


class GroupWrite(Write[ConsumerGroup]):
    """What changes in one consumer group."""

    __slots__ = ()

    # -- the group ----------------------------------------------------------------------

    def put_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Count the group's epoch up."""
        group = self.group
        self.add(records.group_epoch_record(group.group_id, epoch, metadata_hash))
        group.epoch = epoch
        group.metadata_hash = metadata_hash

    def put_target_epoch(self, epoch: int, now_ms: int) -> None:
        """The target assignment is of this epoch now."""
        group = self.group
        self.add(records.target_epoch_record(group.group_id, epoch, now_ms))
        group.target_epoch = epoch
        group.assignment_timestamp_ms = now_ms

    def put_expression(self, expression: str, resolved: ResolvedExpression) -> None:
        """Keep the topics that a regular expression matches."""
        self.add(records.expression_record(self.group.group_id, expression, resolved))
        self.group.put_expression(expression, resolved)

    def remove_expression(self, expression: str) -> None:
        """Nobody subscribes by this regular expression any more."""
        self.add(records.expression_tombstone(self.group.group_id, expression))
        self.group.remove_expression(expression)

    def remove_topics_record(self) -> None:
        """Delete what an older Kafka kept of the group's topics."""
        self.add(records.topics_metadata_tombstone(self.group.group_id))
        self.group.has_topics_record = False

    def remove_group(self) -> None:
        """End the group, with all members that it has."""
        group = self.group
        tombstones = records.group_tombstones(group.group_id, group.members, group.expressions)
        for record in tombstones:
            self.add(record)
        for member_id in list(group.members):
            group.remove_member(member_id)
        group.targets.clear()
        group.expressions.clear()
        group.target_epoch = NO_TARGET_EPOCH

    # -- members ------------------------------------------------------------------------

    def put_metadata(self, member: ConsumerGroupMember) -> None:
        """What a member said of itself is new or has changed."""
        encoded = self.encoded_of(records.said_by(member))
        self.add(records.member_record(self.group.group_id, member, encoded))
        self.group.put_member(member)

    def put_current(self, member: ConsumerGroupMember) -> None:
        """What a member owns, or its epoch, has changed."""
        self.add(records.current_assignment_record(self.group.group_id, member))
        self.group.put_member(member)

    def put_target(self, member_id: str, target: TargetAssignment) -> None:
        """What a member is to own has changed."""
        self.add(records.target_assignment_record(self.group.group_id, member_id, target))
        self.group.targets[member_id] = target

    def remove_target(self, member_id: str) -> None:
        """A target is left of somebody who is no member."""
        self.add(records.target_assignment_tombstone(self.group.group_id, member_id))
        del self.group.targets[member_id]

    def remove_member(self, member_id: str) -> None:
        """A member is gone."""
        group = self.group
        for record in records.member_tombstones(group.group_id, member_id):
            self.add(record)
        group.targets.pop(member_id, None)
        group.remove_member(member_id)


class Writer(Generic[GroupT]):
    """Hands the writes of all groups to the log, and acts upon their ends.

    Args:
        runtime: the log.
        on_lost: called with a group whose write was lost, once it holds again what it held
            before.
        on_broken: called with a group of which only the log can tell what it holds.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        on_lost: Callable[[GroupT], None],
        on_broken: Callable[[GroupT], None],
    ) -> None:
        self._runtime = runtime
        self._on_lost = on_lost
        self._on_broken = on_broken

    def submit(self, write: Write[GroupT], on_complete: Callable[[ErrorCode], None]) -> None:
        """Append what changed; `on_complete` is called when it is on enough replicas or failed.

        Without any change it is called when all earlier changes are: an answer may tell of
        nothing that could still be lost.
        """
        group = write.group
        before = write.before
        if before is None:
            self._when_settled(group, on_complete)
            return
        group.refresh_state()
        in_flight = group.writes.begin(before)

        def appended(error: ErrorCode, _offset: int) -> None:
            if error is ErrorCode.REQUEST_TIMED_OUT:
                on_complete(group_error(error))
                self._finish_later(group, in_flight)
                return
            if not in_flight.is_refused:
                self._finish(group, in_flight, error)
            on_complete(group_error(error))
            group.writes.call_waiting()

        refusal = self._runtime.append(group.partition, write.records, appended)
        if refusal and not group.is_conversion_open:
            # It is certain at once, so nothing can have been built on it.
            group.writes.refuse(in_flight)
            logger.warning(
                "cannot append a write of group %s, rolling it back: %s",
                group.group_id,
                refusal.name,
            )
            group.restore(before)
            self._on_lost(group)
        elif write.after_submit is not None:
            write.after_submit()

    def _when_settled(self, group: GroupT, on_complete: Callable[[ErrorCode], None]) -> None:
        """Wait for earlier changes, no longer than for one's own."""
        if group.writes.is_settled:
            on_complete(ErrorCode.NONE)
            return
        writes = group.writes
        lost_before = writes.lost_count
        timer = self._runtime.schedule(
            self._runtime.settings.offsets_commit_timeout_ms,
            lambda: on_complete(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        )

        def settled() -> None:
            if timer.callback is not None:
                timer.cancel()
                # What was lost is what the answer was going to tell of.
                is_lost = writes.lost_count > lost_before
                on_complete(ErrorCode.COORDINATOR_NOT_AVAILABLE if is_lost else ErrorCode.NONE)

        writes.when_settled(settled)

    def _finish_later(self, group: GroupT, in_flight: InFlightWrite[Any]) -> None:
        """A change is in the log, and late: it counts once the replicas have it.

        Until then it is not visible, as if it had not been late.
        """
        log, partition = self._runtime.log, group.partition
        try:
            end = log.end_offset(partition)
        except KafkaError:
            return  # another broker leads the partition now, and reads what there is

        def look() -> None:
            try:
                is_replicated = log.high_watermark(partition) >= end
            except KafkaError:
                return
            if is_replicated:
                self._finish(group, in_flight, ErrorCode.NONE)
                group.writes.call_waiting()
            else:
                self._runtime.schedule(LATE_LOOK_MS, look)

        look()

    def _finish(self, group: GroupT, in_flight: InFlightWrite[Any], error: ErrorCode) -> None:
        recovery = group.writes.finish(in_flight, error)
        if recovery is None:
            return
        if group.is_dead and not group.is_conversion_open:
            return  # another broker has it by now, and reads what is in the log
        logger.warning("a write of group %s failed, rolling it back", group.group_id)
        group.restore(recovery.image)
        if recovery.reload:
            self._on_broken(group)
        else:
            self._on_lost(group)
