"""ClassicGroups: the verbs on classic groups, and the rebalances that they set off.

PreparingRebalance lasts until all members rejoined, or the longest of their rebalance timeouts;
dynamic members that did not rejoin are dropped then. CompletingRebalance lasts until the leader's
assignment is stored; members that do not send SyncGroup within the rebalance timeout are dropped
too. Source: Kafka's GroupMetadataManager (classicGroupJoin, classicGroupSync, classicGroupLeave
and what they call); KIP-134 (initial delay), KIP-345 and KIP-814 (static members), KIP-394
(member id first), KIP-559 (protocol type and name), KIP-800 (reasons).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ....common.errors import ErrorCode, KafkaError
from ....runtime.rng import random_uuid
from ...append_errors import group_error
from ..records import fits_string, group_record
from ..runtime import GroupRuntime
from ..settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from .group import ClassicGroup
from .member import ClassicGroupMember
from .messages import (
    UNKNOWN_MEMBER_ID,
    JoinAnswer,
    JoinCallback,
    JoinedMember,
    JoinRequest,
    LeavingMember,
    MemberProtocol,
    SyncAnswer,
    SyncCallback,
    SyncRequest,
)
from .sessions import Sessions
from .states import TRANSITIONS, ClassicGroupState, GroupEvent

logger = logging.getLogger(__name__)


class Replacement(NamedTuple):
    """One member's change of id, with all that is needed to take it back."""

    group: ClassicGroup
    member: ClassicGroupMember
    group_instance_id: str
    supports_skipping_assignment: bool
    old_member_id: str
    old_leader_id: str | None
    old_protocols: Sequence[MemberProtocol]
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int


class ClassicGroups:
    """The rules of classic groups.

    Args:
        runtime: settings, time, random numbers and the log.
    """

    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self.sessions = Sessions(runtime, self.expire_member, self.remove_pending_member)

    # -- JoinGroup ----------------------------------------------------------------------

    def join(self, group: ClassicGroup, request: JoinRequest, respond: JoinCallback) -> None:
        """Take the request up; `respond` is called at once, or when the join phase is over."""
        member_id = request.member_id
        if not self._may_join(group, member_id):
            group.remove(member_id)
            respond(JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
            self._complete_if_all_joined(group)
        elif not group.supports_protocols(
            request.protocol_type, [protocol.name for protocol in request.protocols]
        ):
            respond(JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        elif member_id == UNKNOWN_MEMBER_ID:
            self._join_new(group, request, respond)
        elif member_id in group.pending_members:
            if request.group_instance_id is not None:
                # Ids are given out to dynamic members only.
                respond(JoinAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, UNKNOWN_MEMBER_ID))
                return
            self._add_member(group, request, member_id, respond)
        else:
            self._rejoin(group, request, respond)

    def _may_join(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether group.max.size allows this member.

        In the join phase those count who have joined, not those who may still come: the
        setting may have been lowered, and then the last to rejoin are left out.
        """
        size_max = self._runtime.settings.max_size
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            if member is not None and member.is_awaiting_join:
                return True
            return group.members_awaiting_join < size_max
        if group.state is ClassicGroupState.EMPTY:
            return True
        return member_id in group.members or len(group.members) < size_max

    def _join_new(self, group: ClassicGroup, request: JoinRequest, respond: JoinCallback) -> None:
        instance_id = request.group_instance_id
        new_member_id = self._new_member_id(request)
        if not fits_string(new_member_id):  # it is the client's id, and some more
            respond(JoinAnswer(ErrorCode.INVALID_REQUEST, UNKNOWN_MEMBER_ID))
        elif instance_id is not None:
            if instance_id in group.static_members:
                self._replace_static_member(group, request, new_member_id, respond)
            else:
                self._add_member(group, request, new_member_id, respond)
        elif request.requires_known_member_id:
            self.sessions.add_pending(group, new_member_id, request.session_timeout_ms)
            respond(JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, new_member_id))
        else:
            self._add_member(group, request, new_member_id, respond)

    def _new_member_id(self, request: JoinRequest) -> str:
        """The client's or the instance's name, a dash, and a UUID's text."""
        digits = random_uuid(self._runtime.rng).hex()
        uuid_text = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return f"{request.group_instance_id or request.client_id}-{uuid_text}"

    def _add_member(
        self, group: ClassicGroup, request: JoinRequest, member_id: str, respond: JoinCallback
    ) -> None:
        member = ClassicGroupMember(
            member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
        )
        member.is_new = True
        if (
            group.state is ClassicGroupState.PREPARING_REBALANCE
            and group.previous_state is ClassicGroupState.EMPTY
        ):
            group.new_member_added = True
        group.add(member, respond)
        self.sessions.extend_by(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.prepare_or_complete(group, f"member {member_id} joins: {request.join_reason}")

    def _rejoin(self, group: ClassicGroup, request: JoinRequest, respond: JoinCallback) -> None:
        member_id = request.member_id
        try:
            member = group.check_member(member_id, request.group_instance_id)
        except KafkaError as refusal:
            respond(JoinAnswer(refusal.code, member_id))
            return
        changed = tuple(request.protocols) != member.protocols
        is_leader = member_id == group.leader_id
        if group.state is ClassicGroupState.COMPLETING_REBALANCE and not changed:
            # It may not have received the answer to its first JoinGroup.
            everybody = group.joined_members() if is_leader else []
            respond(group.generation_answer(member, everybody))
        elif group.state is ClassicGroupState.STABLE and not changed and not is_leader:
            respond(group.generation_answer(member, []))
        else:
            # A leader that rejoins a stable group causes a rebalance: the topics may have
            # changed, which no member's metadata shows.
            group.update(
                member,
                request.protocols,
                request.rebalance_timeout_ms,
                request.session_timeout_ms,
                respond,
            )
            self.prepare_or_complete(group, f"member {member_id} rejoins: {request.join_reason}")

    # -- static members that come back --------------------------------------------------
    #
    # While the group is stable and its protocol stays the same nobody rebalances: the new id is
    # stored, and the member gets its former assignment at its next SyncGroup.

    def _replace_static_member(
        self, group: ClassicGroup, request: JoinRequest, new_member_id: str, respond: JoinCallback
    ) -> None:
        """Let the member of the request's instance go on as `new_member_id`.

        Whoever used the former id is fenced from here on.
        """
        replacement = self._exchange(group, request, new_member_id, respond)
        if (
            group.state is ClassicGroupState.STABLE
            and group.select_protocol() == group.protocol_name
        ):
            assignments = {m.member_id: m.assignment for m in group.members.values()}
            self._runtime.append(
                group.partition,
                [group_record(group, assignments)],
                partial(self._replacement_stored, replacement),
            )
        elif group.state is ClassicGroupState.PREPARING_REBALANCE:
            self._complete_if_all_joined(group)
        else:
            # In CompletingRebalance the leader may be assigning to the former id just now,
            # so the new one would come away with nothing.
            self.prepare(
                group,
                f"static member {request.group_instance_id} came back as {new_member_id}: "
                f"{request.join_reason}",
            )

    def _exchange(
        self, group: ClassicGroup, request: JoinRequest, new_member_id: str, respond: JoinCallback
    ) -> Replacement:
        instance_id = request.group_instance_id
        assert instance_id is not None
        old_leader_id = group.leader_id
        old = group.members[group.static_members[instance_id]]
        member = group.replace_static_member(instance_id, old.member_id, new_member_id)
        group.update(
            member,
            request.protocols,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            respond,
        )
        self.sessions.extend(group, member)
        return Replacement(
            group,
            member,
            instance_id,
            request.supports_skipping_assignment,
            old.member_id,
            old_leader_id,
            old.protocols,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
        )

    def _replacement_stored(self, replacement: Replacement, error: ErrorCode, _offset: int) -> None:
        """The new id is stored, or could not be.

        Where a rebalance has begun meanwhile the member waits for its end like all others,
        and the next generation is stored with the new id.
        """
        group, member = replacement.group, replacement.member
        if (
            group.state is not ClassicGroupState.STABLE
            or group.members.get(member.member_id) is not member
        ):
            return
        if error:
            self._take_back(replacement, error)
            return
        answer = group.generation_answer(member, [])
        if not replacement.supports_skipping_assignment:
            # It must not assign: a stable group would not hand that out. A leader of
            # another name keeps it from trying.
            answer = answer._replace(leader=replacement.old_leader_id or "")
        elif member.member_id == group.leader_id:
            answer = answer._replace(skip_assignment=True, members=group.joined_members())
        group.answer_join(member, answer)

    def _take_back(self, replacement: Replacement, error: ErrorCode) -> None:
        """The log still knows the former id, so the group goes on with that."""
        group = replacement.group
        group.answer_join(
            replacement.member,
            JoinAnswer(
                group_error(error),
                UNKNOWN_MEMBER_ID,
                group.generation_id,
                group.protocol_type,
                group.protocol_name,
                replacement.old_leader_id or "",
            ),
        )
        old = group.replace_static_member(
            replacement.group_instance_id, replacement.member.member_id, replacement.old_member_id
        )
        group.update(
            old,
            replacement.old_protocols,
            replacement.old_rebalance_timeout_ms,
            replacement.old_session_timeout_ms,
            None,
        )
        self.sessions.extend(group, old)

    # -- SyncGroup ----------------------------------------------------------------------

    def sync(self, group: ClassicGroup, request: SyncRequest, respond: SyncCallback) -> None:
        """The leader brings the assignment, everybody gets a share of it.

        `respond` is called at once, or when the assignment is stored.
        """
        try:
            member = self._check_sync(group, request)
        except KafkaError as refusal:
            respond(SyncAnswer(refusal.code))
            return
        group.pending_sync_members.discard(request.member_id)
        if not group.pending_sync_members:
            self._stop_waiting_for_sync(group)
        if group.state is ClassicGroupState.STABLE:
            respond(group.sync_answer(member))
            return
        if member.sync_callback is not None:
            # A retry over another connection: the first one will not be read any more.
            group.answer_sync(member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_callback = respond
        if request.member_id == group.leader_id:
            self._store_assignment(group, request.assignments)

    def _check_sync(self, group: ClassicGroup, request: SyncRequest) -> ClassicGroupMember:
        if group.state is ClassicGroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if _differs(request.protocol_type, group.protocol_type) or _differs(
            request.protocol_name, group.protocol_name
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.answers.sync:
            raise KafkaError(group.answers.sync)
        return member

    def _store_assignment(self, group: ClassicGroup, given: Mapping[str, bytes]) -> None:
        """Keep the leader's assignment in the log, then hand it to all members."""
        generation_id = group.generation_id
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        forgotten = len(assignments.keys() - given.keys())
        if forgotten:
            logger.info(
                "the leader of group %s assigned nothing to %d of its %d members",
                group.group_id,
                forgotten,
                len(assignments),
            )

        def stored(error: ErrorCode, _offset: int) -> None:
            # Somebody may have joined meanwhile, and made this generation out of date.
            if (
                group.state is not ClassicGroupState.COMPLETING_REBALANCE
                or group.generation_id != generation_id
            ):
                return
            if error:
                self._reset_assignment(group, group_error(error))
                self.prepare(group, f"the assignment could not be stored: {error.name}")
                return
            group.take(GroupEvent.ASSIGNMENT_STORED, self._runtime.clock.now_ms())
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            self._hand_out(group, ErrorCode.NONE)

        self._runtime.append(group.partition, [group_record(group, assignments)], stored)

    def _reset_assignment(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Withdraw the assignment that was being made, and answer who waits for it."""
        for member in group.members.values():
            member.assignment = b""
        self._hand_out(group, error)

    def _hand_out(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in list(group.members.values()):
            answer = SyncAnswer(error) if error else group.sync_answer(member)
            if group.answer_sync(member, answer):
                # Its session may have run out while it waited for us, and was not looked at.
                self.sessions.extend(group, member)

    def _expire_pending_sync(self, group: ClassicGroup, generation_id: int) -> None:
        group.sync_timer = None
        if group.generation_id != generation_id or group.state not in (
            ClassicGroupState.COMPLETING_REBALANCE,
            ClassicGroupState.STABLE,
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

    def _stop_waiting_for_sync(self, group: ClassicGroup) -> None:
        group.pending_sync_members.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    # -- LeaveGroup ---------------------------------------------------------------------

    def leave(self, group: ClassicGroup, members: Sequence[LeavingMember]) -> list[ErrorCode]:
        """Members leave, or an administrator removes them; returns the error of each."""
        errors = [_leave(group, member) for member in members]
        if ErrorCode.NONE in errors and group.state is not ClassicGroupState.EMPTY:
            reasons = {member.reason for member in members if member.reason}
            self.prepare_or_complete(
                group, f"members left: {', '.join(sorted(reasons)) or 'not provided'}"
            )
        return errors

    # -- what sets off a rebalance ------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance, or, where one is under way, see whether all have joined."""
        if TRANSITIONS.takes(group.state, GroupEvent.MEMBERSHIP_CHANGED):
            self.prepare(group, reason)
        else:
            self._complete_if_all_joined(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Call all members back and wait for them.

        The first members of a group get group.initial.rebalance.delay.ms, so that a fleet
        that starts together does not rebalance once per member (KIP-134).
        """
        if group.state is ClassicGroupState.COMPLETING_REBALANCE:
            self._reset_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._stop_waiting_for_sync(group)
        is_initial = group.state is ClassicGroupState.EMPTY
        group.take(GroupEvent.MEMBERSHIP_CHANGED, self._runtime.clock.now_ms())
        logger.debug(
            "preparing to rebalance group %s with old generation %d (reason: %s)",
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
            self._complete_join(group)
        else:
            self._wait_for_joins(
                group, group.rebalance_timeout_ms(), partial(self._complete_join, group)
            )

    def expire_member(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """Give up a member whose session is over."""
        logger.info(
            "member %s of group %s has failed, removing it", member.member_id, group.group_id
        )
        group.remove(member.member_id)
        if TRANSITIONS.takes(group.state, GroupEvent.MEMBERSHIP_CHANGED):
            self.prepare(group, f"removing member {member.member_id} on heartbeat expiration")
        elif (
            group.state is ClassicGroupState.PREPARING_REBALANCE and group.has_all_members_joined()
        ):
            self._complete_join(group)

    def remove_pending_member(self, group: ClassicGroup, member_id: str) -> None:
        """Stop waiting for somebody to join with an id that was given out."""
        group.remove(member_id)
        if group.state is ClassicGroupState.PREPARING_REBALANCE and group.has_all_members_joined():
            self._complete_join(group)

    # -- the join phase -----------------------------------------------------------------

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        """End the join phase if nobody is missing; the initial delay runs its course."""
        if (
            group.state is ClassicGroupState.PREPARING_REBALANCE
            and group.previous_state is not ClassicGroupState.EMPTY
            and group.has_all_members_joined()
        ):
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        """End the join phase: drop who did not come, and begin the next generation."""
        if group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return
        self._stop_waiting_for_joins(group)
        for member in list(group.members.values()):
            if not member.is_awaiting_join and not member.is_static:
                group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none came back: their sessions decide.
            self._wait_for_joins(
                group, group.rebalance_timeout_ms(), partial(self._complete_join, group)
            )
            return
        group.begin_generation(self._runtime.clock.now_ms())
        if group.members:
            self._announce_generation(group)
        else:
            self._store_empty(group)

    def _end_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Wait on while new members keep coming, up to the rebalance timeout in all."""
        if group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return
        if not group.new_member_added or remaining_ms == 0:
            self._complete_join(group)
            return
        group.new_member_added = False
        next_delay_ms = min(self._runtime.settings.initial_rebalance_delay_ms, remaining_ms)
        next_remaining_ms = max(remaining_ms - delay_ms, 0)
        self._wait_for_joins(
            group,
            next_delay_ms,
            partial(self._end_initial_delay, group, next_delay_ms, next_remaining_ms),
        )

    def _wait_for_joins(self, group: ClassicGroup, delay_ms: int, then: partial[None]) -> None:
        self._stop_waiting_for_joins(group)
        group.join_timer = self._runtime.schedule(delay_ms, then)

    def _stop_waiting_for_joins(self, group: ClassicGroup) -> None:
        if group.join_timer is not None:
            group.join_timer.cancel()
            group.join_timer = None

    def _store_empty(self, group: ClassicGroup) -> None:
        def stored(error: ErrorCode, _offset: int) -> None:
            if error:
                # After a failure of this broker the last generation would come back, and
                # time out: nobody is in it. So this is worth a warning and no more.
                logger.warning("could not store the empty group %s: %s", group.group_id, error.name)

        self._runtime.append(group.partition, [group_record(group, {})], stored)

    def _announce_generation(self, group: ClassicGroup) -> None:
        """Answer all that wait: the generation, its leader, and to the leader its members."""
        everybody = group.joined_members()
        nobody: list[JoinedMember] = []
        for member in list(group.members.values()):
            is_leader = member.member_id == group.leader_id
            group.pending_sync_members.add(member.member_id)
            group.answer_join(
                member, group.generation_answer(member, everybody if is_leader else nobody)
            )
            self.sessions.extend(group, member)
            member.is_new = False
        group.sync_timer = self._runtime.schedule(
            group.rebalance_timeout_ms(),
            partial(self._expire_pending_sync, group, group.generation_id),
        )


def _leave(group: ClassicGroup, leaving: LeavingMember) -> ErrorCode:
    member_id = leaving.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        known = group.static_members.get(leaving.group_instance_id or "")
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known
    elif member_id in group.pending_members:
        group.remove(member_id)
        return ErrorCode.NONE
    try:
        group.check_member(member_id, leaving.group_instance_id)
    except KafkaError as refusal:
        return refusal.code
    group.remove(member_id)
    return ErrorCode.NONE


def _differs(requested: str | None, actual: str | None) -> bool:
    return requested is not None and actual is not None and requested != actual
