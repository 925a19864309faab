"""Sessions and rebalance time-outs: who stays silent, or keeps what it has to give up, is fenced.

A member on the classic protocol that is called back has its rebalance timeout to send JoinGroup,
and then as long to send SyncGroup; else it is fenced. Source: Kafka's
`scheduleConsumerGroupJoinTimeoutIfAbsent` and `scheduleConsumerGroupSyncTimeout`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..runtime import GroupRuntime
from ..session import Session
from .group import ConsumerGroup
from .member import ConsumerGroupMember, MemberTimers
from .settings import GroupTimings
from .states import MemberState


class MemberSessions:
    """The timers of all members.

    Args:
        runtime: clock and timers.
        timings: how long a session is, for each group.
        on_expired: called with a group, the id of its member whose time is over, and why.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        timings: GroupTimings,
        on_expired: Callable[[ConsumerGroup, str, str], None],
    ) -> None:
        self._runtime = runtime
        self._timings = timings
        self._on_expired = on_expired

    def extend(self, group: ConsumerGroup, member_id: str) -> None:
        """A sign of life: the session ends its timeout from now, not before."""
        timers = group.timers.get(member_id) or _timers_of(group, member_id)
        session = timers.session
        if session is None:
            on_over = partial(self._is_over, group, member_id, timers)
            session = timers.session = Session(self._runtime, on_over)
        session.extend(self._session_timeout_ms(group, member_id))

    def _session_timeout_ms(self, group: ConsumerGroup, member_id: str) -> int:
        """A member on the classic protocol says itself how long its session is."""
        member = group.members.get(member_id)
        if member is not None and member.classic_member_metadata is not None:
            return member.classic_member_metadata.session_timeout_ms
        return self._timings.session_timeout_ms(group.group_id)

    def expect_revocation(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """Give the member its rebalance timeout to say that it gave its partitions up."""
        timers = _timers_of(group, member.member_id)
        timers.cancel_rebalance()
        timers.rebalance = self._runtime.schedule(
            member.rebalance_timeout_ms,
            partial(self._look_at_revocation, group, member.member_id, member.member_epoch),
        )

    def note_reconciled(self, group: ConsumerGroup, member_id: str) -> None:
        """The member has nothing to give up any more."""
        timers = group.timers.get(member_id)
        if timers is not None:
            timers.cancel_rebalance()

    def forget(self, group: ConsumerGroup, member_id: str) -> None:
        """The member is gone."""
        timers = group.timers.pop(member_id, None)
        if timers is not None:
            timers.cancel()

    def stop(self, group: ConsumerGroup) -> None:
        """Cancel every timer of a group that is no longer kept here."""
        for timers in group.timers.values():
            timers.cancel()
        group.timers.clear()

    def resume(self, group: ConsumerGroup) -> None:
        """Begin the sessions of members that have none: they were read back, or restored."""
        for member_id in list(group.timers):
            if member_id not in group.members:
                self.forget(group, member_id)
        for member in group.members.values():
            timers = group.timers.get(member.member_id)
            if timers is None:
                self.extend(group, member.member_id)
                timers = group.timers[member.member_id]
            if (
                timers.rebalance is None
                and member.state is MemberState.UNREVOKED_PARTITIONS
                and not member.uses_classic_protocol
            ):
                self.expect_revocation(group, member)

    def _is_over(self, group: ConsumerGroup, member_id: str, timers: MemberTimers) -> None:
        if (
            not group.is_dead
            and group.timers.get(member_id) is timers
            and member_id in group.members
        ):
            self._on_expired(group, member_id, "its session timed out")

    def _look_at_revocation(self, group: ConsumerGroup, member_id: str, epoch: int) -> None:
        timers = group.timers.get(member_id)
        if timers is not None:
            timers.rebalance = None
        member = group.members.get(member_id)
        if (
            group.is_dead
            or member is None
            or member.member_epoch != epoch
            or member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            return
        self._on_expired(
            group,
            member_id,
            f"it kept partitions longer than the {member.rebalance_timeout_ms} ms of its "
            f"rebalance timeout, in epoch {epoch}",
        )

    # -- members on the classic protocol --------------------------------------------------

    def expect_join(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """The member was called back; if it was before, its time runs on."""
        timers = _timers_of(group, member.member_id)
        if timers.join is None:
            timers.join = self._runtime.schedule(
                member.rebalance_timeout_ms,
                partial(self._look_at_join, group, member.member_id, timers),
            )

    def note_joined(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """The member joined, and is to send SyncGroup next."""
        timers = _timers_of(group, member.member_id)
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

    def _look_at_join(self, group: ConsumerGroup, member_id: str, timers: MemberTimers) -> None:
        timers.join = None
        self._expire_classic(group, member_id, timers, "it did not join again in time")

    def _look_at_sync(self, group: ConsumerGroup, member_id: str, timers: MemberTimers) -> None:
        timers.sync = None
        self._expire_classic(group, member_id, timers, "it sent no SyncGroup in time")

    def _expire_classic(
        self, group: ConsumerGroup, member_id: str, timers: MemberTimers, reason: str
    ) -> None:
        member = group.members.get(member_id)
        if (
            not group.is_dead
            and group.timers.get(member_id) is timers
            and member is not None
            and member.uses_classic_protocol
        ):
            self._on_expired(group, member_id, reason)


def _timers_of(group: ConsumerGroup, member_id: str) -> MemberTimers:
    timers = group.timers.get(member_id)
    if timers is None:
        timers = group.timers[member_id] = MemberTimers()
    return timers
