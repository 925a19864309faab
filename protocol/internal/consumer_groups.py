"""What `__consumer_offsets` keeps of groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bytes_, int8, int32, int64, string, struct, uuid


class ConsumerGroupMetadataKey(Message, versions="0"):
    group_id: str = string()


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


class ConsumerGroupPartitionMetadataKey(Message, versions="0"):
    group_id: str = string()


class ConsumerGroupPartitionMetadataValue(Message, versions="0", flexible="0+"):
    topics: list[TopicMetadata] = array()

    class TopicMetadata(Struct):
        topic_id: bytes = uuid()
        topic_name: str = string()
        num_partitions: int = int32()
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = array()

    class PartitionMetadata(Struct):
        partition: int = int32()
        racks: list[str] = array(of=string)


class ConsumerGroupMemberMetadataKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(of=string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(nullable="0+", tag=0)

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int = int32()
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = array()

    class ClassicProtocol(Struct):
        name: str = string()
        metadata: bytes = bytes_()


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="0"):
    group_id: str = string()


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = array()

    class TopicPartition(Struct):
        topic_id: bytes = uuid()
        partitions: list[int] = array(of=int32)


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array()
    partitions_pending_revocation: list[TopicPartitions] = array()

    class TopicPartitions(Struct):
        topic_id: bytes = uuid()
        partitions: list[int] = array(of=int32)
        assignment_epochs: list[int] | None = array(of=int32, nullable="0+", tag=0)


class ConsumerGroupRegularExpressionKey(Message, versions="0"):
    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupRegularExpressionValue(Message, versions="0", flexible="0+"):
    topics: list[str] = array(of=string)
    version: int = int64()
    timestamp: int = int64()
