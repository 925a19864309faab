"""Requests to classic groups and their answers, free of wire messages and versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ....common.errors import ErrorCode


class MemberProtocol(NamedTuple):
    """One protocol that a member supports, with the member's metadata for it."""

    name: str
    metadata: bytes


class JoinRequest(NamedTuple):
    """A JoinGroup request.

    Attributes:
        requires_known_member_id: whether a dynamic member must come back with the id that
            it is given (JoinGroup v4 on).
        supports_skipping_assignment: whether a static leader that came back learns so
            without having to assign anew (v9 on).
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


UNKNOWN_MEMBER_ID = ""
"""The member id of a client that has none yet."""

UNKNOWN_GENERATION = -1
"""The generation of a client that is in none."""


class JoinedMember(NamedTuple):
    """A member as the JoinGroup answer to the leader lists it."""

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


class SyncRequest(NamedTuple):
    """A SyncGroup request; `assignments`, by member id, come from the leader."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = {}


JoinCallback = Callable[[JoinAnswer], None]
SyncCallback = Callable[[SyncAnswer], None]
