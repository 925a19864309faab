"""OffsetDelete: forget a group's offsets."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String

OffsetDeleteRequest = Message(
    "OffsetDeleteRequest",
    Field("group_id", String),
    Field(
        "topics",
        Array(
            "OffsetDeleteRequestTopic",
            Field("name", String),
            Field(
                "partitions", Array("OffsetDeleteRequestPartition", Field("partition_index", Int32))
            ),
        ),
    ),
    api_key=47,
    versions="0",
)

OffsetDeleteResponse = Message(
    "OffsetDeleteResponse",
    Field("error_code", Int16),
    Field("throttle_time_ms", Int32, ignorable=True),
    Field(
        "topics",
        Array(
            "OffsetDeleteResponseTopic",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "OffsetDeleteResponsePartition",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                ),
            ),
        ),
    ),
    api_key=47,
    versions="0",
)
