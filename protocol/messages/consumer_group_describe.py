"""ConsumerGroupDescribe: groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, string, struct, uuid


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible="0+"):
    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = bool_()


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
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
        members: list[ConsumerGroupDescribeResponse.Member] = array()
        authorized_operations: int = int32(default=-0x80000000)

    class Member(Struct):
        member_id: str = string()
        instance_id: str | None = string(nullable="0+", default=None)
        rack_id: str | None = string(nullable="0+", default=None)
        member_epoch: int = int32()
        client_id: str = string()
        client_host: str = string()
        subscribed_topic_names: list[str] = array(of=string)
        subscribed_topic_regex: str | None = string(nullable="0+", default=None)
        assignment: ConsumerGroupDescribeResponse.Assignment = struct()
        target_assignment: ConsumerGroupDescribeResponse.Assignment = struct()
        member_type: int = int8("1+", default=-1, ignorable=True)

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = array()

    class TopicPartitions(Struct):
        topic_id: bytes = uuid()
        topic_name: str = string()
        partitions: list[int] = array(of=int32)
