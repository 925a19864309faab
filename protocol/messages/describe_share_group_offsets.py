"""DescribeShareGroupOffsets: the start offsets of share groups."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String, Uuid

DescribeShareGroupOffsetsRequest = Message(
    "DescribeShareGroupOffsetsRequest",
    Field(
        "groups",
        Array(
            "DescribeShareGroupOffsetsRequestGroup",
            Field("group_id", String),
            Field(
                "topics",
                Array(
                    "DescribeShareGroupOffsetsRequestTopic",
                    Field("topic_name", String),
                    Field("partitions", Array(Int32)),
                ),
                nullable="0+",
            ),
        ),
    ),
    api_key=90,
    versions="0-1",
    flexible="0+",
)

DescribeShareGroupOffsetsResponse = Message(
    "DescribeShareGroupOffsetsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "groups",
        Array(
            "DescribeShareGroupOffsetsResponseGroup",
            Field("group_id", String),
            Field(
                "topics",
                Array(
                    "DescribeShareGroupOffsetsResponseTopic",
                    Field("topic_name", String),
                    Field("topic_id", Uuid),
                    Field(
                        "partitions",
                        Array(
                            "DescribeShareGroupOffsetsResponsePartition",
                            Field("partition_index", Int32),
                            Field("start_offset", Int64),
                            Field("leader_epoch", Int32),
                            Field("lag", Int64, "1+", default=-1, ignorable=True),
                            Field("error_code", Int16),
                            Field("error_message", String, nullable="0+", default=None),
                        ),
                    ),
                ),
            ),
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
        ),
    ),
    api_key=90,
    versions="0-1",
    flexible="0+",
)
