"""OffsetForLeaderEpoch: where a leader's epoch ends in the log."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String

OffsetForLeaderEpochRequest = Message(
    "OffsetForLeaderEpochRequest",
    Field("replica_id", Int32, "3+", default=-2, ignorable=True),
    Field(
        "topics",
        Array(
            "OffsetForLeaderTopic",
            Field("topic", String),
            Field(
                "partitions",
                Array(
                    "OffsetForLeaderPartition",
                    Field("partition", Int32),
                    Field("current_leader_epoch", Int32, "2+", default=-1, ignorable=True),
                    Field("leader_epoch", Int32),
                ),
            ),
        ),
    ),
    api_key=23,
    versions="0-4",
    flexible="4+",
)

OffsetForLeaderEpochResponse = Message(
    "OffsetForLeaderEpochResponse",
    Field("throttle_time_ms", Int32, "2+", ignorable=True),
    Field(
        "topics",
        Array(
            "OffsetForLeaderTopicResult",
            Field("topic", String),
            Field(
                "partitions",
                Array(
                    "EpochEndOffset",
                    Field("error_code", Int16),
                    Field("partition", Int32),
                    Field("leader_epoch", Int32, "1+", default=-1, ignorable=True),
                    Field("end_offset", Int64, default=-1),
                ),
            ),
        ),
    ),
    api_key=23,
    versions="0-4",
    flexible="4+",
)
