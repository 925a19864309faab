"""SyncGroup: the leader brings the assignment, everybody takes a share of it.

Source: Kafka's GroupMetadataManager.classicGroupSync, KIP-559.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from ....common.errors import ErrorCode, KafkaError
from ..answers import SyncAnswer
from .group import Group
from .member import GroupMember, SyncCallback
from .rebalancing import Rebalancing
from .states import GroupState

logger = logging.getLogger(__name__)


class SyncRequest(NamedTuple):
    """What a SyncGroup asks; `assignments`, by member id, is the leader's to bring."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = {}


class Syncing:
    """The rules of SyncGroup.

    Args:
        rebalancing: stores the assignment and hands it out.
    """

    def __init__(self, rebalancing: Rebalancing) -> None:
        self._rebalancing = rebalancing

    def sync(self, group: Group, request: SyncRequest, respond: SyncCallback) -> None:
        """Take the request up; `respond` is called at once, or when the assignment is stored."""
        try:
            member = self._check(group, request)
        except KafkaError as refusal:
            respond(SyncAnswer(refusal.code))
            return
        self._rebalancing.note_sync(group, request.member_id)
        if group.state is GroupState.STABLE:
            respond(
                SyncAnswer(
                    ErrorCode.NONE, member.assignment, group.protocol_type, group.protocol_name
                )
            )
            return
        if member.sync_callback is not None:
            # A retry over another connection: the first one will not be read any more.
            group.answer_sync(member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_callback = respond
        if request.member_id == group.leader_id:
            self._store(group, request.assignments)

    def _check(self, group: Group, request: SyncRequest) -> GroupMember:
        if group.state is GroupState.EMPTY:
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

    def _store(self, group: Group, given: Mapping[str, bytes]) -> None:
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        forgotten = len(assignments.keys() - given.keys())
        if forgotten:
            logger.info(
                "the leader of group %s assigned nothing to %d of its %d members",
                group.group_id,
                forgotten,
                len(assignments),
            )
        self._rebalancing.store_assignment(group, assignments)


def _differs(asked: str | None, actual: str | None) -> bool:
    return asked is not None and actual is not None and asked != actual
