"""OffsetCommit: store how far a group has read."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String, Uuid

OffsetCommitRequest = Message(
    "OffsetCommitRequest",
    Field("group_id", String),
    Field("generation_id_or_member_epoch", Int32, "1+", default=-1, ignorable=True),
    Field("member_id", String, "1+", ignorable=True),
    Field("group_instance_id", String, "7+", nullable="7+", default=None),
    Field("retention_time_ms", Int64, "2-4", default=-1, ignorable=True),
    Field(
        "topics",
        Array(
            "OffsetCommitRequestTopic",
            Field("name", String, "0-9", ignorable=True),
            Field("topic_id", Uuid, "10+", ignorable=True),
            Field(
                "partitions",
                Array(
                    "OffsetCommitRequestPartition",
                    Field("partition_index", Int32),
                    Field("committed_offset", Int64),
                    Field("committed_leader_epoch", Int32, "6+", default=-1, ignorable=True),
                    Field("commit_timestamp", Int64, "1", default=-1),
                    Field("committed_metadata", String, nullable="0+"),
                ),
            ),
        ),
    ),
    api_key=8,
    versions="0-10",
    flexible="8+",
)

OffsetCommitResponse = Message(
    "OffsetCommitResponse",
    Field("throttle_time_ms", Int32, "3+", ignorable=True),
    Field(
        "topics",
        Array(
            "OffsetCommitResponseTopic",
            Field("name", String, "0-9", ignorable=True),
            Field("topic_id", Uuid, "10+", ignorable=True),
            Field(
                "partitions",
                Array(
                    "OffsetCommitResponsePartition",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                ),
            ),
        ),
    ),
    api_key=8,
    versions="0-10",
    flexible="8+",
)
