"""JoinGroup: who may become a member, and what an existing one's rejoining means.

Source: Kafka's GroupMetadataManager.classicGroupJoin; KIP-394 (member id first), KIP-345
(static members), KIP-559 (protocol type and name), KIP-814 (skipped assignment).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ....protocol.errors import ErrorCode, KafkaError
from ....runtime.randomness import random_uuid
from .answers import UNKNOWN_MEMBER_ID, JoinAnswer, JoinedMember
from .append_errors import group_error
from .context import CoordinatorContext
from .group import Group
from .member import GroupMember, JoinCallback, MemberProtocol
from .rebalancing import Rebalancing
from .records import group_record
from .settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from .states import GroupState


class JoinRequest(NamedTuple):
    """What a JoinGroup asks.

    Attributes:
        requires_known_member_id: whether a dynamic member must come back with the id that
            it is given (JoinGroup v4 on).
        supports_skipping_assignment: whether a static leader that came back can be told so
            without making it assign anew (v9 on).
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Sequence[MemberProtocol]
    reason: str | None = None
    requires_known_member_id: bool = False
    supports_skipping_assignment: bool = False

    @property
    def join_reason(self) -> str:
        """Why the client says it joins."""
        return self.reason or "not provided"


class Joining:
    """The rules of JoinGroup.

    Args:
        context: settings, chance and the log.
        rebalancing: what a join sets off.
    """

    def __init__(self, context: CoordinatorContext, rebalancing: Rebalancing) -> None:
        self._context = context
        self._rebalancing = rebalancing

    def join(self, group: Group, request: JoinRequest, respond: JoinCallback) -> None:
        """Take the request up; `respond` is called at once, or when the join phase is over."""
        member_id = request.member_id
        if not self._has_room_for(group, member_id):
            group.remove(member_id)
            respond(JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
            self._rebalancing.complete_if_all_joined(group)
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

    def _has_room_for(self, group: Group, member_id: str) -> bool:
        """Whether group.max.size allows this member.

        In the join phase those count who have joined, not those who may still come: the
        setting may have been lowered, and then the last to rejoin are left out.
        """
        size_max = self._context.settings.max_size
        if group.state is GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            if member is not None and member.is_awaiting_join:
                return True
            return group.members_awaiting_join < size_max
        if group.state is GroupState.EMPTY:
            return True
        return member_id in group.members or len(group.members) < size_max

    # -- members without an id ----------------------------------------------------------

    def _join_new(self, group: Group, request: JoinRequest, respond: JoinCallback) -> None:
        instance_id = request.group_instance_id
        new_member_id = self._new_member_id(request)
        if instance_id is not None:
            old_member_id = group.static_members.get(instance_id)
            if old_member_id is None:
                self._add_member(group, request, new_member_id, respond)
            else:
                self._replace_static(group, request, old_member_id, new_member_id, respond)
        elif request.requires_known_member_id:
            self._rebalancing.sessions.add_pending(group, new_member_id, request.session_timeout_ms)
            respond(JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, new_member_id))
        else:
            self._add_member(group, request, new_member_id, respond)

    def _new_member_id(self, request: JoinRequest) -> str:
        """The client's or the instance's name, a dash, and a UUID's text."""
        digits = random_uuid(self._context.chance).hex()
        uuid_text = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return f"{request.group_instance_id or request.client_id}-{uuid_text}"

    def _add_member(
        self, group: Group, request: JoinRequest, member_id: str, respond: JoinCallback
    ) -> None:
        member = GroupMember(
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
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is GroupState.EMPTY
        ):
            group.new_member_added = True
        group.add(member, respond)
        self._rebalancing.sessions.extend_by(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalancing.prepare_or_complete(
            group, f"member {member_id} joins: {request.join_reason}"
        )

    # -- members that were here before --------------------------------------------------

    def _rejoin(self, group: Group, request: JoinRequest, respond: JoinCallback) -> None:
        member_id = request.member_id
        try:
            member = group.check_member(member_id, request.group_instance_id)
        except KafkaError as refusal:
            respond(JoinAnswer(refusal.code, member_id))
            return
        changed = tuple(request.protocols) != member.protocols
        is_leader = member_id == group.leader_id
        if group.state is GroupState.COMPLETING_REBALANCE and not changed:
            # It may not have received the answer to its first JoinGroup.
            everybody = group.joined_members() if is_leader else []
            respond(self._rebalancing.generation_answer(group, member, everybody))
        elif group.state is GroupState.STABLE and not changed and not is_leader:
            respond(self._rebalancing.generation_answer(group, member, []))
        else:
            # A leader that rejoins a stable group asks for a rebalance: the topics may have
            # changed, which no member's metadata shows.
            self._update_member(group, member, request, respond)
            self._rebalancing.prepare_or_complete(
                group, f"member {member_id} rejoins: {request.join_reason}"
            )

    def _update_member(
        self, group: Group, member: GroupMember, request: JoinRequest, respond: JoinCallback
    ) -> None:
        group.update(
            member,
            request.protocols,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            respond,
        )

    def _replace_static(
        self,
        group: Group,
        request: JoinRequest,
        old_member_id: str,
        new_member_id: str,
        respond: JoinCallback,
    ) -> None:
        """A static member came back under a new id: it takes the old one's place.

        While the group is stable and its protocol stays the same, no rebalance is needed:
        the new id is stored, and the member gets its old assignment at its next SyncGroup.
        """
        assert request.group_instance_id is not None
        old_leader_id = group.leader_id
        replaced = group.members[old_member_id]
        before = (replaced.protocols, replaced.rebalance_timeout_ms, replaced.session_timeout_ms)
        member = group.replace_static_member(
            request.group_instance_id, old_member_id, new_member_id
        )
        self._update_member(group, member, request, respond)
        self._rebalancing.sessions.extend(group, member)
        if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
            self._context.append(
                group.partition,
                [group_record(group, {m.member_id: m.assignment for m in group.members.values()})],
                partial(
                    self._replaced, group, request, member, old_member_id, old_leader_id, before
                ),
            )
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._rebalancing.complete_if_all_joined(group)
        else:
            # In CompletingRebalance the leader may be assigning to the old id just now, so
            # the new one would come away with nothing.
            self._rebalancing.prepare(
                group,
                f"static member {request.group_instance_id} came back as {new_member_id}: "
                f"{request.join_reason}",
            )

    def _replaced(
        self,
        group: Group,
        request: JoinRequest,
        member: GroupMember,
        old_member_id: str,
        old_leader_id: str | None,
        before: tuple[Sequence[MemberProtocol], int, int],
        error: ErrorCode,
        _offset: int,
    ) -> None:
        """The new id of a static member is stored, or could not be.

        Where a rebalance has begun meanwhile the member waits for its end like all others,
        and the next generation is stored with the new id.
        """
        if (
            group.state is not GroupState.STABLE
            or group.members.get(member.member_id) is not member
        ):
            return
        if error:
            self._take_back(group, request, member, old_member_id, old_leader_id, before, error)
            return
        is_leader = member.member_id == group.leader_id
        members: list[JoinedMember] = []
        answer = self._rebalancing.generation_answer(group, member, members)
        if not request.supports_skipping_assignment:
            # It must not assign: a stable group would not hand that out. A leader of
            # another name keeps it from trying.
            answer = answer._replace(leader=old_leader_id or "")
        elif is_leader:
            answer = answer._replace(skip_assignment=True, members=group.joined_members())
        group.answer_join(member, answer)

    def _take_back(
        self,
        group: Group,
        request: JoinRequest,
        member: GroupMember,
        old_member_id: str,
        old_leader_id: str | None,
        before: tuple[Sequence[MemberProtocol], int, int],
        error: ErrorCode,
    ) -> None:
        """The log still knows the old id, so the group goes on with that."""
        assert request.group_instance_id is not None
        group.answer_join(
            member,
            JoinAnswer(
                group_error(error),
                UNKNOWN_MEMBER_ID,
                group.generation_id,
                group.protocol_type,
                group.protocol_name,
                old_leader_id or "",
            ),
        )
        old = group.replace_static_member(
            request.group_instance_id, member.member_id, old_member_id
        )
        group.update(old, *before, None)
        self._rebalancing.sessions.extend(group, old)
