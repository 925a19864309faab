"""AddRaftVoter: a voter joins a KRaft quorum (KIP-853)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, string, uint16, uuid


class AddRaftVoterRequest(Message, api_key=80, versions="0-1", flexible="0+"):
    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array()
    ack_when_committed: bool = bool_("1+", default=True)

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()


class AddRaftVoterResponse(Message, api_key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
