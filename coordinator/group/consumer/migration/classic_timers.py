"""What members on the classic protocol are given time for: to join again, and to sync.

One that is called back has its rebalance timeout to send JoinGroup, and then as long to send
SyncGroup; who does not is fenced. Source: Kafka's `scheduleConsumerGroupJoinTimeoutIfAbsent` and
`scheduleConsumerGroupSyncTimeout`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...runtime import GroupRuntime
from ..group import ConsumerGroup
from ..member import ConsumerGroupMember
from ..member_timers import MemberTimers
from ..states import ConsumerGroupState


class ClassicTimers:
    """The join and sync timers of such members.

    Args:
        runtime: timers.
        on_expired: called with a group, the id of its member whose time is over, and why.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        on_expired: Callable[[ConsumerGroup, str, str], None],
    ) -> None:
        self._runtime = runtime
        self._on_expired = on_expired

    def expect_join(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """The member was called back; if it was before, its time runs on."""
        timers = self._timers(group, member.member_id)
        if timers.join is None:
            timers.join = self._runtime.schedule(
                member.rebalance_timeout_ms,
                partial(self._look_at_join, group, member.member_id, timers),
            )

    def note_joined(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """The member joined, and is to send SyncGroup next."""
        timers = self._timers(group, member.member_id)
        timers.cancel_classic()
        timers.cancel_rebalance()  # it may have come from the consumer protocol
        timers.sync = self._runtime.schedule(
            member.rebalance_timeout_ms,
            partial(self._look_at_sync, group, member.member_id, timers),
        )

    def note_synced(self, group: ConsumerGroup, member_id: str) -> None:
        """The member has its assignment."""
        timers = group.timers.get(member_id)
        if timers is not None and timers.sync is not None:
            timers.sync.cancel()
            timers.sync = None

    def _timers(self, group: ConsumerGroup, member_id: str) -> MemberTimers:
        timers = group.timers.get(member_id)
        if timers is None:
            timers = group.timers[member_id] = MemberTimers()
        return timers

    def _look_at_join(self, group: ConsumerGroup, member_id: str, timers: MemberTimers) -> None:
        timers.join = None
        self._expire(group, member_id, timers, "it did not join again in time")

    def _look_at_sync(self, group: ConsumerGroup, member_id: str, timers: MemberTimers) -> None:
        timers.sync = None
        self._expire(group, member_id, timers, "it sent no SyncGroup in time")

    def _expire(
        self, group: ConsumerGroup, member_id: str, timers: MemberTimers, reason: str
    ) -> None:
        member = group.members.get(member_id)
        if (
            group.state is not ConsumerGroupState.DEAD
            and group.timers.get(member_id) is timers
            and member is not None
            and member.uses_classic_protocol
        ):
            self._on_expired(group, member_id, reason)
