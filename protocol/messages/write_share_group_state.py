"""WriteShareGroupState: a partition's state to the share coordinator."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, String, Uuid

WriteShareGroupStateRequest = Message(
    "WriteShareGroupStateRequest",
    Field("group_id", String),
    Field(
        "topics",
        Array(
            "WriteStateData",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition", Int32),
                    Field("state_epoch", Int32),
                    Field("leader_epoch", Int32),
                    Field("start_offset", Int64),
                    Field("delivery_complete_count", Int32, "1+", default=-1, ignorable=True),
                    Field(
                        "state_batches",
                        Array(
                            "StateBatch",
                            Field("first_offset", Int64),
                            Field("last_offset", Int64),
                            Field("delivery_state", Int8),
                            Field("delivery_count", Int16),
                        ),
                    ),
                ),
            ),
        ),
    ),
    api_key=85,
    versions="0-1",
    flexible="0+",
)

WriteShareGroupStateResponse = Message(
    "WriteShareGroupStateResponse",
    Field(
        "results",
        Array(
            "WriteStateResult",
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
    api_key=85,
    versions="0-1",
    flexible="0+",
)
