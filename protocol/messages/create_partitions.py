"""CreatePartitions: give topics more partitions."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, String

CreatePartitionsRequest = Message(
    "CreatePartitionsRequest",
    Field(
        "topics",
        Array(
            "CreatePartitionsTopic",
            Field("name", String),
            Field("count", Int32),
            Field(
                "assignments",
                Array("CreatePartitionsAssignment", Field("broker_ids", Array(Int32))),
                nullable="0+",
            ),
        ),
    ),
    Field("timeout_ms", Int32),
    Field("validate_only", Bool),
    api_key=37,
    versions="0-3",
    flexible="2+",
)

CreatePartitionsResponse = Message(
    "CreatePartitionsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "results",
        Array(
            "CreatePartitionsTopicResult",
            Field("name", String),
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
        ),
    ),
    api_key=37,
    versions="0-3",
    flexible="2+",
)
