"""ShareGroupDescribe: share groups (KIP-932)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, string, struct, uuid


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", flexible="0+"):
    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = bool_()


class ShareGroupDescribeResponse(Message, api_key=77, versions="1", flexible="0+"):
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array()

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        assignor_name: str = string()
        members: list[ShareGroupDescribeResponse.Member] = array()
        authorized_operations: int = int32(default=-0x80000000)

    class Member(Struct):
        member_id: str = string()
        rack_id: str | None = string(nullable="0+", default=None)
        member_epoch: int = int32()
        client_id: str = string()
        client_host: str = string()
        subscribed_topic_names: list[str] = array(of=string)
        assignment: ShareGroupDescribeResponse.Assignment = struct()

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = array()

    class TopicPartitions(Struct):
        topic_id: bytes = uuid()
        topic_name: str = string()
        partitions: list[int] = array(of=int32)
