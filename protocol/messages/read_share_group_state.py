"""ReadShareGroupState: a partition's state from the share coordinator."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, String, Uuid

ReadShareGroupStateRequest = Message(
    "ReadShareGroupStateRequest",
    Field("group_id", String),
    Field(
        "topics",
        Array(
            "ReadStateData",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array("PartitionData", Field("partition", Int32), Field("leader_epoch", Int32)),
            ),
        ),
    ),
    api_key=84,
    versions="0",
    flexible="0+",
)

ReadShareGroupStateResponse = Message(
    "ReadShareGroupStateResponse",
    Field(
        "results",
        Array(
            "ReadStateResult",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionResult",
                    Field("partition", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                    Field("state_epoch", Int32),
                    Field("start_offset", Int64),
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
    api_key=84,
    versions="0",
    flexible="0+",
)
