"""InitializeShareGroupState: a share coordinator begins a partition's state."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String, Uuid

InitializeShareGroupStateRequest = Message(
    "InitializeShareGroupStateRequest",
    Field("group_id", String),
    Field(
        "topics",
        Array(
            "InitializeStateData",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition", Int32),
                    Field("state_epoch", Int32),
                    Field("start_offset", Int64),
                ),
            ),
        ),
    ),
    api_key=83,
    versions="0",
    flexible="0+",
)

InitializeShareGroupStateResponse = Message(
    "InitializeShareGroupStateResponse",
    Field(
        "results",
        Array(
            "InitializeStateResult",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionResult",
                    Field("partition", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                ),
            ),
        ),
    ),
    api_key=83,
    versions="0",
    flexible="0+",
)
