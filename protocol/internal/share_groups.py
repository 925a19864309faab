"""What `__consumer_offsets` keeps of share groups (KIP-932)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int8, int32, int64, string, uuid


class ShareGroupMetadataKey(Message, versions="0"):
    group_id: str = string()


class ShareGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupMemberMetadataKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(of=string)


class ShareGroupTargetAssignmentMetadataKey(Message, versions="0"):
    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class ShareGroupTargetAssignmentMemberKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ShareGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = array()

    class TopicPartition(Struct):
        topic_id: bytes = uuid()
        partitions: list[int] = array(of=int32)


class ShareGroupCurrentMemberAssignmentKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ShareGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array()

    class TopicPartitions(Struct):
        topic_id: bytes = uuid()
        partitions: list[int] = array(of=int32)


class ShareGroupStatePartitionMetadataKey(Message, versions="0"):
    group_id: str = string()


class ShareGroupStatePartitionMetadataValue(Message, versions="0", flexible="0+"):
    initializing_topics: list[TopicPartitionsInfo] = array()
    initialized_topics: list[TopicPartitionsInfo] = array()
    deleting_topics: list[TopicInfo] = array()

    class TopicPartitionsInfo(Struct):
        topic_id: bytes = uuid()
        topic_name: str = string()
        partitions: list[int] = array(of=int32)

    class TopicInfo(Struct):
        topic_id: bytes = uuid()
        topic_name: str = string()
