"""What the coordinator is asked and what it answers, free of wire messages and versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...common.errors import ErrorCode

UNKNOWN_MEMBER_ID = ""
"""The member id of a client that has none yet."""

UNKNOWN_GENERATION = -1
"""The generation of a client that is in none."""


class JoinedMember(NamedTuple):
    """A member as the leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """The answer to a JoinGroup; `members` is for the leader alone."""

    error: ErrorCode
    member_id: str
    generation_id: int = UNKNOWN_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


class SyncAnswer(NamedTuple):
    """The answer to a SyncGroup."""

    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


class LeavingMember(NamedTuple):
    """Whom a LeaveGroup names: by member id, or a static member by its instance alone."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class DescribedMember(NamedTuple):
    """A member as DescribeGroups tells of it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupDescription(NamedTuple):
    """A group as DescribeGroups tells of it."""

    group_id: str
    error: ErrorCode
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[DescribedMember] = ()
    error_message: str | None = None


class GroupListing(NamedTuple):
    """A group as ListGroups tells of it."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str
