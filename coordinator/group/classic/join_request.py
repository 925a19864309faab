"""What a JoinGroup asks, free of wire messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class MemberProtocol(NamedTuple):
    """One protocol that a member supports, with the member's metadata for it."""

    name: str
    metadata: bytes


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
