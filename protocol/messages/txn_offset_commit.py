"""TxnOffsetCommit: a group's offsets as part of a transaction."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String

TxnOffsetCommitRequest = Message(
    "TxnOffsetCommitRequest",
    Field("transactional_id", String),
    Field("group_id", String),
    Field("producer_id", Int64),
    Field("producer_epoch", Int16),
    Field("generation_id", Int32, "3+", default=-1),
    Field("member_id", String, "3+"),
    Field("group_instance_id", String, "3+", nullable="3+", default=None),
    Field(
        "topics",
        Array(
            "TxnOffsetCommitRequestTopic",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "TxnOffsetCommitRequestPartition",
                    Field("partition_index", Int32),
                    Field("committed_offset", Int64),
                    Field("committed_leader_epoch", Int32, "2+", default=-1, ignorable=True),
                    Field("committed_metadata", String, nullable="0+"),
                ),
            ),
        ),
    ),
    api_key=28,
    versions="0-5",
    flexible="3+",
)

TxnOffsetCommitResponse = Message(
    "TxnOffsetCommitResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "topics",
        Array(
            "TxnOffsetCommitResponseTopic",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "TxnOffsetCommitResponsePartition",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                ),
            ),
        ),
    ),
    api_key=28,
    versions="0-5",
    flexible="3+",
)
