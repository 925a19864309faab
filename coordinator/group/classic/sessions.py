"""Sessions: a member that is not heard of for its session timeout is given up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..runtime import GroupRuntime
from ..session import Session
from .group import ClassicGroup
from .member import ClassicGroupMember


class Sessions:
    """The sessions of all members.

    Args:
        runtime: clock and timers.
        on_member_expired: called with a group and its member whose session is over.
        on_pending_expired: called with a group and an id that nobody joined with in time.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        on_member_expired: Callable[[ClassicGroup, ClassicGroupMember], None],
        on_pending_expired: Callable[[ClassicGroup, str], None],
    ) -> None:
        self._runtime = runtime
        self._on_member_expired = on_member_expired
        self._on_pending_expired = on_pending_expired

    def extend(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """A sign of life: the session ends its timeout from now, not before."""
        session = member.session
        if session is None:
            self.extend_by(group, member, member.session_timeout_ms)
        else:
            session.extend(member.session_timeout_ms)

    def extend_by(self, group: ClassicGroup, member: ClassicGroupMember, timeout_ms: int) -> None:
        """End the session in `timeout_ms`, whatever the member's own timeout is."""
        session = member.session
        if session is None:
            on_over = partial(self._is_over, group, member)
            session = member.session = Session(self._runtime, on_over)
        session.extend(timeout_ms)

    def add_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Wait for somebody to join with an id that was just given out."""
        group.pending_members[member_id] = self._runtime.schedule(
            timeout_ms, partial(self._expire_pending, group, member_id)
        )

    def stop(self, group: ClassicGroup) -> None:
        """Cancel every timer of a group that is no longer kept here."""
        for member in group.members.values():
            member.end_session()
        for timer in group.pending_members.values():
            timer.cancel()
        for waiting in (group.join_timer, group.sync_timer):
            if waiting is not None:
                waiting.cancel()

    def _is_over(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        # A member that waits for our answer is given a new deadline along with it.
        if (
            not group.is_dead
            and group.members.get(member.member_id) is member
            and not member.keeps_session_by_waiting
        ):
            self._on_member_expired(group, member)

    def _expire_pending(self, group: ClassicGroup, member_id: str) -> None:
        if not group.is_dead and member_id in group.pending_members:
            self._on_pending_expired(group, member_id)
