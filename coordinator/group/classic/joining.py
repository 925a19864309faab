"""JoinGroup: who may become a member, and what an existing one's rejoining means.

Source: Kafka's GroupMetadataManager.classicGroupJoin; KIP-134 (initial delay), KIP-394
(member id first), KIP-559 (protocol type and name).
"""

from __future__ import annotations

from ....common.errors import ErrorCode, KafkaError
from ....runtime.rng import random_uuid
from ..answers import UNKNOWN_MEMBER_ID, JoinAnswer
from ..records import fits_string
from ..runtime import GroupRuntime
from ..settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from .group import Group
from .join_request import JoinRequest
from .member import GroupMember, JoinCallback
from .rebalancing import Rebalancing
from .states import GroupState
from .static_members import StaticMembers


class Joining:
    """The rules of JoinGroup.

    Args:
        runtime: settings, rng and the log.
        rebalancing: what a join sets off.
    """

    def __init__(self, runtime: GroupRuntime, rebalancing: Rebalancing) -> None:
        self._runtime = runtime
        self._rebalancing = rebalancing
        self._static_members = StaticMembers(runtime, rebalancing)

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
        size_max = self._runtime.settings.max_size
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
        if not fits_string(new_member_id):  # it is the client's id, and some more
            respond(JoinAnswer(ErrorCode.INVALID_REQUEST, UNKNOWN_MEMBER_ID))
        elif instance_id is not None:
            if instance_id in group.static_members:
                self._static_members.replace(group, request, new_member_id, respond)
            else:
                self._add_member(group, request, new_member_id, respond)
        elif request.requires_known_member_id:
            self._rebalancing.sessions.add_pending(group, new_member_id, request.session_timeout_ms)
            respond(JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, new_member_id))
        else:
            self._add_member(group, request, new_member_id, respond)

    def _new_member_id(self, request: JoinRequest) -> str:
        """The client's or the instance's name, a dash, and a UUID's text."""
        digits = random_uuid(self._runtime.rng).hex()
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
            group.update(
                member,
                request.protocols,
                request.rebalance_timeout_ms,
                request.session_timeout_ms,
                respond,
            )
            self._rebalancing.prepare_or_complete(
                group, f"member {member_id} rejoins: {request.join_reason}"
            )
