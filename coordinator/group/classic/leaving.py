"""LeaveGroup: members go by themselves, or an administrator sends static ones away.

Source: Kafka's GroupMetadataManager.classicGroupLeave, KIP-345 (several at once), KIP-800
(reasons).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....common.errors import ErrorCode, KafkaError
from ..answers import UNKNOWN_MEMBER_ID, LeavingMember
from .group import Group
from .rebalancing import Rebalancing
from .states import GroupState


class Leaving:
    """The rules of LeaveGroup.

    Args:
        rebalancing: what leaving sets off.
    """

    def __init__(self, rebalancing: Rebalancing) -> None:
        self._rebalancing = rebalancing

    def leave(self, group: Group, members: Sequence[LeavingMember]) -> list[ErrorCode]:
        """Let members go; returns the error of each, in their order."""
        errors = [self._leave(group, member) for member in members]
        if ErrorCode.NONE in errors and group.state is not GroupState.EMPTY:
            reasons = {member.reason for member in members if member.reason}
            self._rebalancing.prepare_or_complete(
                group, f"members left: {', '.join(sorted(reasons)) or 'not provided'}"
            )
        return errors

    def _leave(self, group: Group, leaving: LeavingMember) -> ErrorCode:
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
