"""A rebalance: everybody joins again, a generation begins, its leader assigns.

PreparingRebalance lasts until all members rejoined, or the longest of their rebalance
timeouts; dynamic members that did not rejoin are dropped then. CompletingRebalance lasts
until the leader's assignment is stored; members that do not send SyncGroup within the
rebalance timeout are dropped too. Source: Kafka's GroupMetadataManager.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from ....common.errors import ErrorCode
from ...append_errors import group_error
from ..answers import JoinAnswer, JoinedMember, SyncAnswer
from ..records import group_record
from ..runtime import GroupRuntime
from .group import Group
from .member import GroupMember
from .sessions import Sessions
from .states import TRANSITIONS, GroupEvent, GroupState

logger = logging.getLogger(__name__)


class Rebalancing:
    """Moves groups through their rebalances.

    Args:
        runtime: settings, time and the log.
    """

    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self.sessions = Sessions(runtime, self.expire_member, self.remove_pending_member)

    # -- what sets off a rebalance ------------------------------------------------------

    def prepare_or_complete(self, group: Group, reason: str) -> None:
        """Begin a rebalance, or, where one is under way, see whether all have joined."""
        if TRANSITIONS.takes(group.state, GroupEvent.MEMBERSHIP_CHANGED):
            self.prepare(group, reason)
        else:
            self.complete_if_all_joined(group)

    def prepare(self, group: Group, reason: str) -> None:
        """Call all members back and wait for them.

        The first members of a group get group.initial.rebalance.delay.ms, so that a fleet
        that starts together does not rebalance once per member (KIP-134).
        """
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.reset_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._stop_waiting_for_sync(group)
        is_initial = group.state is GroupState.EMPTY
        group.take(GroupEvent.MEMBERSHIP_CHANGED, self._runtime.clock.now_ms())
        logger.debug(
            "group %s rebalances after generation %d: %s",
            group.group_id,
            group.generation_id,
            reason,
        )
        if is_initial:
            group.new_member_added = False
            delay_ms = self._runtime.settings.initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
            self._wait_for_joins(
                group, delay_ms, partial(self._end_initial_delay, group, delay_ms, remaining_ms)
            )
        elif group.has_all_members_joined():
            self.complete_join(group)
        else:
            self._wait_for_joins(
                group, group.rebalance_timeout_ms(), partial(self.complete_join, group)
            )

    def expire_member(self, group: Group, member: GroupMember) -> None:
        """Give up a member whose session is over."""
        logger.info("group %s gives up member %s", group.group_id, member.member_id)
        group.remove(member.member_id)
        if TRANSITIONS.takes(group.state, GroupEvent.MEMBERSHIP_CHANGED):
            self.prepare(group, f"the session of {member.member_id} is over")
        elif group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined():
            self.complete_join(group)

    def remove_pending_member(self, group: Group, member_id: str) -> None:
        """Stop waiting for somebody to join with an id that was given out."""
        group.remove(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined():
            self.complete_join(group)

    # -- the join phase -----------------------------------------------------------------

    def complete_if_all_joined(self, group: Group) -> None:
        """End the join phase if nobody is missing; the initial delay runs its course."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.has_all_members_joined()
        ):
            self.complete_join(group)

    def complete_join(self, group: Group) -> None:
        """End the join phase: drop who did not come, and begin the next generation."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        self._stop_waiting_for_joins(group)
        for member in list(group.members.values()):
            if not member.is_awaiting_join and not member.is_static:
                group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none came back: their sessions decide.
            self._wait_for_joins(
                group, group.rebalance_timeout_ms(), partial(self.complete_join, group)
            )
            return
        group.begin_generation(self._runtime.clock.now_ms())
        if group.members:
            self._announce_generation(group)
        else:
            self._store_empty(group)

    def _end_initial_delay(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        """Wait on while new members keep coming, up to the rebalance timeout in all."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if not group.new_member_added or remaining_ms == 0:
            self.complete_join(group)
            return
        group.new_member_added = False
        next_delay_ms = min(self._runtime.settings.initial_rebalance_delay_ms, remaining_ms)
        next_remaining_ms = max(remaining_ms - delay_ms, 0)
        self._wait_for_joins(
            group,
            next_delay_ms,
            partial(self._end_initial_delay, group, next_delay_ms, next_remaining_ms),
        )

    def _wait_for_joins(self, group: Group, delay_ms: int, then: partial[None]) -> None:
        self._stop_waiting_for_joins(group)
        group.join_timer = self._runtime.schedule(delay_ms, then)

    def _stop_waiting_for_joins(self, group: Group) -> None:
        if group.join_timer is not None:
            group.join_timer.cancel()
            group.join_timer = None

    def _store_empty(self, group: Group) -> None:
        def stored(error: ErrorCode, _offset: int) -> None:
            if error:
                # After a failure of this broker the last generation would come back, and
                # time out: nobody is in it. So this is worth a warning and no more.
                logger.warning("empty group %s could not be stored: %s", group.group_id, error.name)

        self._runtime.append(group.partition, [group_record(group, {})], stored)

    def _announce_generation(self, group: Group) -> None:
        """Answer all that wait: the generation, its leader, and to the leader its members."""
        everybody = group.joined_members()
        nobody: list[JoinedMember] = []
        for member in list(group.members.values()):
            is_leader = member.member_id == group.leader_id
            group.pending_sync_members.add(member.member_id)
            group.answer_join(
                member, self.generation_answer(group, member, everybody if is_leader else nobody)
            )
            self.sessions.extend(group, member)
            member.is_new = False
        group.sync_timer = self._runtime.schedule(
            group.rebalance_timeout_ms(),
            partial(self._expire_pending_sync, group, group.generation_id),
        )

    def generation_answer(
        self, group: Group, member: GroupMember, members: list[JoinedMember]
    ) -> JoinAnswer:
        """What a member is told of the generation that it is in."""
        return JoinAnswer(
            ErrorCode.NONE,
            member.member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader_id or "",
            members=members,
        )

    # -- the sync phase -----------------------------------------------------------------

    def note_sync(self, group: Group, member_id: str) -> None:
        """A member sent SyncGroup; once all have, nobody is waited for."""
        group.pending_sync_members.discard(member_id)
        if not group.pending_sync_members:
            self._stop_waiting_for_sync(group)

    def store_assignment(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Keep the leader's assignment in the log, then hand it to all members."""
        generation_id = group.generation_id

        def stored(error: ErrorCode, _offset: int) -> None:
            # Somebody may have joined meanwhile, and made this generation out of date.
            if (
                group.state is not GroupState.COMPLETING_REBALANCE
                or group.generation_id != generation_id
            ):
                return
            if error:
                self.reset_assignment(group, group_error(error))
                self.prepare(group, f"the assignment could not be stored: {error.name}")
                return
            group.take(GroupEvent.ASSIGNMENT_STORED, self._runtime.clock.now_ms())
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            self._hand_out(group, ErrorCode.NONE)

        self._runtime.append(group.partition, [group_record(group, assignments)], stored)

    def reset_assignment(self, group: Group, error: ErrorCode) -> None:
        """Withdraw the assignment that was being made, and answer who waits for it."""
        for member in group.members.values():
            member.assignment = b""
        self._hand_out(group, error)

    def _hand_out(self, group: Group, error: ErrorCode) -> None:
        for member in list(group.members.values()):
            if error:
                answer = SyncAnswer(error)
            else:
                answer = SyncAnswer(
                    error, member.assignment, group.protocol_type, group.protocol_name
                )
            if group.answer_sync(member, answer):
                # Its session may have run out while it waited for us, and was not looked at.
                self.sessions.extend(group, member)

    def _expire_pending_sync(self, group: Group, generation_id: int) -> None:
        group.sync_timer = None
        if group.generation_id != generation_id or group.state not in (
            GroupState.COMPLETING_REBALANCE,
            GroupState.STABLE,
        ):
            return
        missing = [
            member
            for member in group.members.values()
            if member.member_id in group.pending_sync_members
        ]
        for member in missing:
            group.remove(member.member_id)
        if missing:
            self.prepare(group, f"{len(missing)} members sent no SyncGroup in time")

    def _stop_waiting_for_sync(self, group: Group) -> None:
        group.pending_sync_members.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None
