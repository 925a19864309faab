"""Sessions: a member that is not heard of for its session timeout is given up.

A heartbeat only moves `member.session_deadline_ms`. The one timer that a member has is not
touched by it: when it fires too early it arms itself again for what is left, so a heartbeat
costs no heap operation and a member wakes the loop once per session timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..runtime import GroupRuntime
from .group import ClassicGroup
from .member import ClassicGroupMember
from .states import ClassicGroupState


class Sessions:
    """The session timers of all members.

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
        self._monotonic_ms = runtime.clock.monotonic_ms
        self._on_member_expired = on_member_expired
        self._on_pending_expired = on_pending_expired

    def extend(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """A sign of life: the session ends its timeout from now, not before."""
        deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        member.session_deadline_ms = deadline_ms
        timer = member.session_timer
        if timer is None or timer.at_ms > deadline_ms:
            self._arm(group, member)

    def extend_by(self, group: ClassicGroup, member: ClassicGroupMember, timeout_ms: int) -> None:
        """End the session in `timeout_ms`, whatever the member's own timeout is."""
        member.session_deadline_ms = self._monotonic_ms() + timeout_ms
        self._arm(group, member)

    def add_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Wait for somebody to join with an id that was just given out."""
        group.pending_members[member_id] = self._runtime.schedule(
            timeout_ms, partial(self._expire_pending, group, member_id)
        )

    def stop(self, group: ClassicGroup) -> None:
        """Cancel every timer of a group that is no longer kept here."""
        for member in group.members.values():
            if member.session_timer is not None:
                member.session_timer.cancel()
                member.session_timer = None
        for timer in group.pending_members.values():
            timer.cancel()
        for waiting in (group.join_timer, group.sync_timer):
            if waiting is not None:
                waiting.cancel()

    def _arm(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        if member.session_timer is not None:
            member.session_timer.cancel()
        remaining_ms = member.session_deadline_ms - self._monotonic_ms()
        member.session_timer = self._runtime.schedule(
            remaining_ms, partial(self._look_at, group, member)
        )

    def _look_at(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        member.session_timer = None
        if (
            group.state is ClassicGroupState.DEAD
            or group.members.get(member.member_id) is not member
        ):
            return
        if member.session_deadline_ms > self._monotonic_ms():
            self._arm(group, member)
        elif not member.keeps_session_by_waiting:
            self._on_member_expired(group, member)
        # A member that waits for our answer is given a new deadline along with it.

    def _expire_pending(self, group: ClassicGroup, member_id: str) -> None:
        if group.state is not ClassicGroupState.DEAD and member_id in group.pending_members:
            self._on_pending_expired(group, member_id)
