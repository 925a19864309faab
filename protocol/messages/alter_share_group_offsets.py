"""AlterShareGroupOffsets: set the start offsets of a share group."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String, Uuid

AlterShareGroupOffsetsRequest = Message(
    "AlterShareGroupOffsetsRequest",
    Field("group_id", String),
    Field(
        "topics",
        Array(
            "AlterShareGroupOffsetsRequestTopic",
            Field("topic_name", String),
            Field(
                "partitions",
                Array(
                    "AlterShareGroupOffsetsRequestPartition",
                    Field("partition_index", Int32),
                    Field("start_offset", Int64),
                ),
            ),
        ),
    ),
    api_key=91,
    versions="0",
    flexible="0+",
)

AlterShareGroupOffsetsResponse = Message(
    "AlterShareGroupOffsetsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "responses",
        Array(
            "AlterShareGroupOffsetsResponseTopic",
            Field("topic_name", String),
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "AlterShareGroupOffsetsResponsePartition",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                ),
            ),
        ),
    ),
    api_key=91,
    versions="0",
    flexible="0+",
)
