"""Writes of a group's own records that are not replicated yet, each with what was before it.

A write changes the group at once, so that the next heartbeat builds on it; its answer waits
until the records are on all in-sync replicas. When a write fails before it is in the log, what
was before it is restored. Writes that were built on it must have failed with it: if one is in
the log all the same, log and memory differ and the group has to be read back. Source: what
Kafka's CoordinatorRuntime does with its timelines.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from ....common.errors import ErrorCode
from .member import (
    ConsumerGroupMember,
    ResolvedExpression,
    TargetAssignment,
)
from .states import ConsumerGroupState

ImageT = TypeVar("ImageT")
"""What a group of some type holds at one moment."""


class GroupImage(NamedTuple):
    """What a group held at one moment; nothing of it changes afterwards."""

    state: ConsumerGroupState
    epoch: int
    metadata_hash: int
    target_epoch: int
    assignment_timestamp_ms: int
    members: Mapping[str, ConsumerGroupMember]
    static_members: Mapping[str, str]
    targets: Mapping[str, TargetAssignment]
    expressions: Mapping[str, ResolvedExpression]
    owners: Mapping[tuple[bytes, int], str]

    @property
    def preferred_assignor(self) -> str | None:
        """The assignor that most members request, if any member requests one."""
        return preferred_assignor(self.members)


def preferred_assignor(members: Mapping[str, ConsumerGroupMember]) -> str | None:
    """The assignor that most members request, if any member requests one."""
    votes = Counter(
        member.server_assignor_name
        for member in members.values()
        if member.server_assignor_name is not None
    )
    return max(votes, key=lambda name: (votes[name], name), default=None)


APPENDED_ALL_THE_SAME = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
"""Outcomes after which the records stand in this broker's log."""


class InFlightWrite(Generic[ImageT]):
    """One write.

    Attributes:
        before: what the group held before it.
        is_refused: whether the log did not take it, which was certain at once.
        outcome: None until it has ended.
    """

    __slots__ = ("before", "is_refused", "outcome")

    def __init__(self, before: ImageT) -> None:
        self.before = before
        self.is_refused = False
        self.outcome: ErrorCode | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it ended without its records in the log."""
        return self.outcome is not None and self.outcome not in APPENDED_ALL_THE_SAME


class InFlightWrites(Generic[ImageT]):
    """The writes of one group, oldest first.

    Attributes:
        lost_count: how many writes ended without their records in the log.
        is_broken: whether a write failed that others were built on, which have not ended yet;
            requests for the group are refused until then.
    """

    __slots__ = ("_waiting", "_writes", "is_broken", "lost_count")

    def __init__(self) -> None:
        self._writes: deque[InFlightWrite[ImageT]] = deque()
        self._waiting: list[Callable[[], None]] = []
        self.is_broken = False
        self.lost_count = 0

    @property
    def oldest_image(self) -> ImageT | None:
        """What the group held before the oldest write on its way; None if there is none."""
        return self._writes[0].before if self._writes else None

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way."""
        return not self._writes

    def begin(self, before: ImageT) -> InFlightWrite[ImageT]:
        """A write was handed to the log."""
        write = InFlightWrite(before)
        self._writes.append(write)
        return write

    def refuse(self, write: InFlightWrite[ImageT]) -> None:
        """The log did not take the newest write."""
        assert self._writes[-1] is write
        write.is_refused = True
        self._writes.pop()

    def finish(self, write: InFlightWrite[ImageT], outcome: ErrorCode) -> Recovery[ImageT] | None:
        """A write ended; returns what is to be done if the group cannot stay as it is."""
        write.outcome = outcome
        if write.is_lost:
            self.is_broken = True
            self.lost_count += 1
        recovery = None
        if self.is_broken:
            writes = list(self._writes)
            first = next(index for index, other in enumerate(writes) if other.is_lost)
            built_on_it = writes[first:]
            if any(other.outcome is None for other in built_on_it):
                return None
            all_lost = all(other.is_lost for other in built_on_it)
            recovery = Recovery(built_on_it[0].before, reload=not all_lost)
            self._writes = deque(writes[:first])
            self.is_broken = False
        while self._writes and self._writes[0].outcome is not None:
            self._writes.popleft()
        return recovery

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` once nothing is on its way: at once if that is so."""
        if self.is_settled:
            callback()
        else:
            self._waiting.append(callback)

    def call_waiting(self) -> None:
        """Call who waits, if all has settled; to be called after `finish` was acted upon."""
        if self.is_settled and self._waiting:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()


class Recovery(Generic[ImageT]):
    """What to do with a group whose write was lost.

    Attributes:
        image: what it held before the first write that was lost.
        reload: whether a later write is in the log, so that only the log can tell.
    """

    __slots__ = ("image", "reload")

    def __init__(self, image: ImageT, *, reload: bool) -> None:
        self.image = image
        self.reload = reload
