"""ConsumerGroupDescribe: groups of the consumer protocol (KIP-848)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, String, Struct, Uuid

ASSIGNMENT = Struct(
    "Assignment",
    Field(
        "topic_partitions",
        Array(
            "TopicPartitions",
            Field("topic_id", Uuid),
            Field("topic_name", String),
            Field("partitions", Array(Int32)),
        ),
    ),
)

ConsumerGroupDescribeRequest = Message(
    "ConsumerGroupDescribeRequest",
    Field("group_ids", Array(String)),
    Field("include_authorized_operations", Bool),
    api_key=69,
    versions="0-1",
    flexible="0+",
)

ConsumerGroupDescribeResponse = Message(
    "ConsumerGroupDescribeResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "groups",
        Array(
            "DescribedGroup",
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
            Field("group_id", String),
            Field("group_state", String),
            Field("group_epoch", Int32),
            Field("assignment_epoch", Int32),
            Field("assignor_name", String),
            Field(
                "members",
                Array(
                    "Member",
                    Field("member_id", String),
                    Field("instance_id", String, nullable="0+", default=None),
                    Field("rack_id", String, nullable="0+", default=None),
                    Field("member_epoch", Int32),
                    Field("client_id", String),
                    Field("client_host", String),
                    Field("subscribed_topic_names", Array(String)),
                    Field("subscribed_topic_regex", String, nullable="0+", default=None),
                    Field("assignment", ASSIGNMENT),
                    Field("target_assignment", ASSIGNMENT),
                    Field("member_type", Int8, "1+", default=-1, ignorable=True),
                ),
            ),
            Field("authorized_operations", Int32, default=-0x80000000),
        ),
    ),
    api_key=69,
    versions="0-1",
    flexible="0+",
)
