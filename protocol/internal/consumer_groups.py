"""What `__consumer_offsets` keeps of groups of the consumer protocol (KIP-848)."""

from ..codec.message import Message
from ..codec.types import Array, Bytes, Field, Int8, Int32, Int64, String, Struct, Uuid

TOPIC_PARTITIONS = Struct(
    "TopicPartitions",
    Field("topic_id", Uuid),
    Field("partitions", Array(Int32)),
    Field("assignment_epochs", Array(Int32), nullable="0+", tag=0),
)

ConsumerGroupMetadataKey = Message(
    "ConsumerGroupMetadataKey", Field("group_id", String), versions="0"
)

ConsumerGroupMetadataValue = Message(
    "ConsumerGroupMetadataValue",
    Field("epoch", Int32),
    Field("metadata_hash", Int64, tag=0),
    versions="0",
    flexible="0+",
)

ConsumerGroupPartitionMetadataKey = Message(
    "ConsumerGroupPartitionMetadataKey", Field("group_id", String), versions="0"
)

ConsumerGroupPartitionMetadataValue = Message(
    "ConsumerGroupPartitionMetadataValue",
    Field(
        "topics",
        Array(
            "TopicMetadata",
            Field("topic_id", Uuid),
            Field("topic_name", String),
            Field("num_partitions", Int32),
            Field(
                "partition_metadata",
                Array(
                    "PartitionMetadata", Field("partition", Int32), Field("racks", Array(String))
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)

ConsumerGroupMemberMetadataKey = Message(
    "ConsumerGroupMemberMetadataKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

ConsumerGroupMemberMetadataValue = Message(
    "ConsumerGroupMemberMetadataValue",
    Field("instance_id", String, nullable="0+"),
    Field("rack_id", String, nullable="0+"),
    Field("client_id", String),
    Field("client_host", String),
    Field("subscribed_topic_names", Array(String)),
    Field("subscribed_topic_regex", String, nullable="0+"),
    Field("rebalance_timeout_ms", Int32, default=-1),
    Field("server_assignor", String, nullable="0+"),
    Field(
        "classic_member_metadata",
        Struct(
            "ClassicMemberMetadata",
            Field("session_timeout_ms", Int32),
            Field(
                "supported_protocols",
                Array("ClassicProtocol", Field("name", String), Field("metadata", Bytes)),
            ),
        ),
        nullable="0+",
        tag=0,
    ),
    versions="0",
    flexible="0+",
)

ConsumerGroupTargetAssignmentMetadataKey = Message(
    "ConsumerGroupTargetAssignmentMetadataKey", Field("group_id", String), versions="0"
)

ConsumerGroupTargetAssignmentMetadataValue = Message(
    "ConsumerGroupTargetAssignmentMetadataValue",
    Field("assignment_epoch", Int32),
    Field("assignment_timestamp", Int64, tag=0),
    versions="0",
    flexible="0+",
)

ConsumerGroupTargetAssignmentMemberKey = Message(
    "ConsumerGroupTargetAssignmentMemberKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

ConsumerGroupTargetAssignmentMemberValue = Message(
    "ConsumerGroupTargetAssignmentMemberValue",
    Field(
        "topic_partitions",
        Array("TopicPartition", Field("topic_id", Uuid), Field("partitions", Array(Int32))),
    ),
    versions="0",
    flexible="0+",
)

ConsumerGroupCurrentMemberAssignmentKey = Message(
    "ConsumerGroupCurrentMemberAssignmentKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

ConsumerGroupCurrentMemberAssignmentValue = Message(
    "ConsumerGroupCurrentMemberAssignmentValue",
    Field("member_epoch", Int32),
    Field("previous_member_epoch", Int32),
    Field("state", Int8),
    Field("assigned_partitions", Array(TOPIC_PARTITIONS)),
    Field("partitions_pending_revocation", Array(TOPIC_PARTITIONS)),
    versions="0",
    flexible="0+",
)

ConsumerGroupRegularExpressionKey = Message(
    "ConsumerGroupRegularExpressionKey",
    Field("group_id", String),
    Field("regular_expression", String),
    versions="0",
)

ConsumerGroupRegularExpressionValue = Message(
    "ConsumerGroupRegularExpressionValue",
    Field("topics", Array(String)),
    Field("version", Int64),
    Field("timestamp", Int64),
    versions="0",
    flexible="0+",
)
