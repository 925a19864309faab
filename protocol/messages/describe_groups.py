"""DescribeGroups: state and members of classic groups."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, bytes_, int16, int32, string


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+"):
    groups: list[str] = array(of=string)
    include_authorized_operations: bool = bool_("3+")


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array()

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string("6+", nullable="6+", default=None)
        group_id: str = string()
        group_state: str = string()
        protocol_type: str = string()
        protocol_data: str = string()
        members: list[DescribeGroupsResponse.DescribedGroupMember] = array()
        authorized_operations: int = int32("3+", default=-0x80000000)

    class DescribedGroupMember(Struct):
        member_id: str = string()
        group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
        client_id: str = string()
        client_host: str = string()
        member_metadata: bytes = bytes_()
        member_assignment: bytes = bytes_()
