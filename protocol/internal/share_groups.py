"""What `__consumer_offsets` keeps of share groups (KIP-932)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int32, Int64, String, Struct, Uuid

TOPIC_PARTITIONS_INFO = Struct(
    "TopicPartitionsInfo",
    Field("topic_id", Uuid),
    Field("topic_name", String),
    Field("partitions", Array(Int32)),
)

ShareGroupMetadataKey = Message("ShareGroupMetadataKey", Field("group_id", String), versions="0")

ShareGroupMetadataValue = Message(
    "ShareGroupMetadataValue",
    Field("epoch", Int32),
    Field("metadata_hash", Int64),
    versions="0",
    flexible="0+",
)

ShareGroupMemberMetadataKey = Message(
    "ShareGroupMemberMetadataKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

ShareGroupMemberMetadataValue = Message(
    "ShareGroupMemberMetadataValue",
    Field("rack_id", String, nullable="0+"),
    Field("client_id", String),
    Field("client_host", String),
    Field("subscribed_topic_names", Array(String)),
    versions="0",
    flexible="0+",
)

ShareGroupTargetAssignmentMetadataKey = Message(
    "ShareGroupTargetAssignmentMetadataKey", Field("group_id", String), versions="0"
)

ShareGroupTargetAssignmentMetadataValue = Message(
    "ShareGroupTargetAssignmentMetadataValue",
    Field("assignment_epoch", Int32),
    Field("assignment_timestamp", Int64, tag=0),
    versions="0",
    flexible="0+",
)

ShareGroupTargetAssignmentMemberKey = Message(
    "ShareGroupTargetAssignmentMemberKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

ShareGroupTargetAssignmentMemberValue = Message(
    "ShareGroupTargetAssignmentMemberValue",
    Field(
        "topic_partitions",
        Array("TopicPartition", Field("topic_id", Uuid), Field("partitions", Array(Int32))),
    ),
    versions="0",
    flexible="0+",
)

ShareGroupCurrentMemberAssignmentKey = Message(
    "ShareGroupCurrentMemberAssignmentKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

ShareGroupCurrentMemberAssignmentValue = Message(
    "ShareGroupCurrentMemberAssignmentValue",
    Field("member_epoch", Int32),
    Field("previous_member_epoch", Int32),
    Field("state", Int8),
    Field(
        "assigned_partitions",
        Array("TopicPartitions", Field("topic_id", Uuid), Field("partitions", Array(Int32))),
    ),
    versions="0",
    flexible="0+",
)

ShareGroupStatePartitionMetadataKey = Message(
    "ShareGroupStatePartitionMetadataKey", Field("group_id", String), versions="0"
)

ShareGroupStatePartitionMetadataValue = Message(
    "ShareGroupStatePartitionMetadataValue",
    Field("initializing_topics", Array(TOPIC_PARTITIONS_INFO)),
    Field("initialized_topics", Array(TOPIC_PARTITIONS_INFO)),
    Field(
        "deleting_topics", Array("TopicInfo", Field("topic_id", Uuid), Field("topic_name", String))
    ),
    versions="0",
    flexible="0+",
)
