"""One member of a classic group: who it is, what it supports, and what it waits for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..session import Session
from .messages import JoinCallback, MemberProtocol, SyncCallback


class ClassicGroupMember:
    """A member of one group.

    Attributes:
        protocols: in the member's order of preference.
        assignment: what the leader of the current generation gave it.
        is_new: from its first JoinGroup until that is answered.
        join_callback: answers the JoinGroup that waits, if any.
        sync_callback: answers the SyncGroup that waits, if any.
        session: how long it may be silent; None before it first was heard of, and once it is gone.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_callback",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "sync_callback",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Sequence[MemberProtocol],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = tuple(protocols)
        self.assignment = assignment
        self.is_new = False
        self.join_callback: JoinCallback | None = None
        self.sync_callback: SyncCallback | None = None
        self.session: Session | None = None

    def end_session(self) -> None:
        """It is gone, or kept elsewhere."""
        if self.session is not None:
            self.session.stop()
            self.session = None

    @property
    def is_static(self) -> bool:
        """Whether the member keeps its place over restarts (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        """Whether a JoinGroup of this member waits for its answer."""
        return self.join_callback is not None

    @property
    def keeps_session_by_waiting(self) -> bool:
        """Whether the member need not send heartbeats, since we owe it an answer.

        A new member must: it may have gone long ago without our noticing.
        """
        if self.is_new:
            return False
        return self.join_callback is not None or self.sync_callback is not None

    def metadata(self, protocol_name: str) -> bytes:
        """The member's metadata for a protocol that it supports.

        Raises:
            KeyError: it does not support that protocol.
        """
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise KeyError(f"member {self.member_id} does not support protocol {protocol_name}")

    def vote(self, candidates: Collection[str]) -> str:
        """The first of the member's protocols that is a candidate.

        Raises:
            KeyError: it supports none of them.
        """
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise KeyError(f"member {self.member_id} supports none of {sorted(candidates)}")

    def renamed(self, member_id: str) -> ClassicGroupMember:
        """The same member under another id, waiting for nothing (a static member came back)."""
        return ClassicGroupMember(
            member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
            assignment=self.assignment,
        )
