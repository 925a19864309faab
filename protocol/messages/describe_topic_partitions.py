"""DescribeTopicPartitions: topics' partitions, page by page (KIP-966)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, String, Struct, Uuid

DescribeTopicPartitionsRequest = Message(
    "DescribeTopicPartitionsRequest",
    Field("topics", Array("TopicRequest", Field("name", String))),
    Field("response_partition_limit", Int32, default=2000),
    Field(
        "cursor",
        Struct("Cursor", Field("topic_name", String), Field("partition_index", Int32)),
        nullable="0+",
        default=None,
    ),
    api_key=75,
    versions="0",
    flexible="0+",
)

DescribeTopicPartitionsResponse = Message(
    "DescribeTopicPartitionsResponse",
    Field("throttle_time_ms", Int32, ignorable=True),
    Field(
        "topics",
        Array(
            "DescribeTopicPartitionsResponseTopic",
            Field("error_code", Int16),
            Field("name", String, nullable="0+"),
            Field("topic_id", Uuid, ignorable=True),
            Field("is_internal", Bool, ignorable=True),
            Field(
                "partitions",
                Array(
                    "DescribeTopicPartitionsResponsePartition",
                    Field("error_code", Int16),
                    Field("partition_index", Int32),
                    Field("leader_id", Int32),
                    Field("leader_epoch", Int32, default=-1, ignorable=True),
                    Field("replica_nodes", Array(Int32)),
                    Field("isr_nodes", Array(Int32)),
                    Field("eligible_leader_replicas", Array(Int32), nullable="0+", default=None),
                    Field("last_known_elr", Array(Int32), nullable="0+", default=None),
                    Field("offline_replicas", Array(Int32), ignorable=True),
                ),
            ),
            Field("topic_authorized_operations", Int32, default=-0x80000000),
        ),
    ),
    Field(
        "next_cursor",
        Struct("Cursor", Field("topic_name", String), Field("partition_index", Int32)),
        nullable="0+",
        default=None,
    ),
    api_key=75,
    versions="0",
    flexible="0+",
)
