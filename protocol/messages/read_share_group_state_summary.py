"""ReadShareGroupStateSummary: a partition's state without its batches."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String, Uuid

ReadShareGroupStateSummaryRequest = Message(
    "ReadShareGroupStateSummaryRequest",
    Field("group_id", String),
    Field(
        "topics",
        Array(
            "ReadStateSummaryData",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array("PartitionData", Field("partition", Int32), Field("leader_epoch", Int32)),
            ),
        ),
    ),
    api_key=87,
    versions="0-1",
    flexible="0+",
)

ReadShareGroupStateSummaryResponse = Message(
    "ReadShareGroupStateSummaryResponse",
    Field(
        "results",
        Array(
            "ReadStateSummaryResult",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionResult",
                    Field("partition", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                    Field("state_epoch", Int32),
                    Field("leader_epoch", Int32),
                    Field("start_offset", Int64),
                    Field("delivery_complete_count", Int32, "1+", default=-1, ignorable=True),
                ),
            ),
        ),
    ),
    api_key=87,
    versions="0-1",
    flexible="0+",
)
