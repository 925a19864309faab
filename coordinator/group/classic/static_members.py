"""Static members that come back: one takes its former place under a new id (KIP-345, KIP-814).

While the group is stable and its protocol stays the same nobody rebalances: the new id is
stored, and the member gets its former assignment at its next SyncGroup.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ....common.errors import ErrorCode
from ...append_errors import group_error
from ..answers import UNKNOWN_MEMBER_ID, JoinAnswer
from ..records import group_record
from ..runtime import GroupRuntime
from .group import Group
from .join_request import JoinRequest, MemberProtocol
from .member import GroupMember, JoinCallback
from .rebalancing import Rebalancing
from .states import GroupState


class Replacement(NamedTuple):
    """One member's change of id, with all that is needed to take it back."""

    group: Group
    member: GroupMember
    group_instance_id: str
    supports_skipping_assignment: bool
    old_member_id: str
    old_leader_id: str | None
    old_protocols: Sequence[MemberProtocol]
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int


class StaticMembers:
    """Gives static members that come back their places.

    Args:
        runtime: the log.
        rebalancing: what a new id may set off.
    """

    def __init__(self, runtime: GroupRuntime, rebalancing: Rebalancing) -> None:
        self._runtime = runtime
        self._rebalancing = rebalancing

    def replace(
        self, group: Group, request: JoinRequest, new_member_id: str, respond: JoinCallback
    ) -> None:
        """Let the member of the request's instance go on as `new_member_id`.

        Whoever used the former id is fenced from here on.
        """
        replacement = self._exchange(group, request, new_member_id, respond)
        if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
            assignments = {m.member_id: m.assignment for m in group.members.values()}
            self._runtime.append(
                group.partition,
                [group_record(group, assignments)],
                partial(self._stored, replacement),
            )
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._rebalancing.complete_if_all_joined(group)
        else:
            # In CompletingRebalance the leader may be assigning to the former id just now,
            # so the new one would come away with nothing.
            self._rebalancing.prepare(
                group,
                f"static member {request.group_instance_id} came back as {new_member_id}: "
                f"{request.join_reason}",
            )

    def _exchange(
        self, group: Group, request: JoinRequest, new_member_id: str, respond: JoinCallback
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
        self._rebalancing.sessions.extend(group, member)
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

    def _stored(self, replacement: Replacement, error: ErrorCode, _offset: int) -> None:
        """The new id is stored, or could not be.

        Where a rebalance has begun meanwhile the member waits for its end like all others,
        and the next generation is stored with the new id.
        """
        group, member = replacement.group, replacement.member
        if (
            group.state is not GroupState.STABLE
            or group.members.get(member.member_id) is not member
        ):
            return
        if error:
            self._take_back(replacement, error)
            return
        answer = self._rebalancing.generation_answer(group, member, [])
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
        self._rebalancing.sessions.extend(group, old)
