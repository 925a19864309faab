"""ShareGroupDescribe: share groups (KIP-932)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, String, Struct, Uuid

ShareGroupDescribeRequest = Message(
    "ShareGroupDescribeRequest",
    Field("group_ids", Array(String)),
    Field("include_authorized_operations", Bool),
    api_key=77,
    versions="1",
    flexible="0+",
)

ShareGroupDescribeResponse = Message(
    "ShareGroupDescribeResponse",
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
                    Field("rack_id", String, nullable="0+", default=None),
                    Field("member_epoch", Int32),
                    Field("client_id", String),
                    Field("client_host", String),
                    Field("subscribed_topic_names", Array(String)),
                    Field(
                        "assignment",
                        Struct(
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
                        ),
                    ),
                ),
            ),
            Field("authorized_operations", Int32, default=-0x80000000),
        ),
    ),
    api_key=77,
    versions="1",
    flexible="0+",
)
