"""JoinGroup: become or stay a member of a classic group."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, bytes_, int16, int32, string


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+"):
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array()
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)

    class JoinGroupRequestProtocol(Struct):
        name: str = string()
        metadata: bytes = bytes_()


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = bool_("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array()

    class JoinGroupResponseMember(Struct):
        member_id: str = string()
        group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
        metadata: bytes = bytes_()
