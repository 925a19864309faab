"""ListOffsets: the offsets that belong to timestamps, or to a log's ends."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, String

ListOffsetsRequest = Message(
    "ListOffsetsRequest",
    Field("replica_id", Int32),
    Field("isolation_level", Int8, "2+"),
    Field(
        "topics",
        Array(
            "ListOffsetsTopic",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "ListOffsetsPartition",
                    Field("partition_index", Int32),
                    Field("current_leader_epoch", Int32, "4+", default=-1, ignorable=True),
                    Field("timestamp", Int64),
                    Field("max_num_offsets", Int32, "0", default=1),
                ),
            ),
        ),
    ),
    Field("timeout_ms", Int32, "10+", ignorable=True),
    api_key=2,
    versions="0-11",
    flexible="6+",
)

ListOffsetsResponse = Message(
    "ListOffsetsResponse",
    Field("throttle_time_ms", Int32, "2+", ignorable=True),
    Field(
        "topics",
        Array(
            "ListOffsetsTopicResponse",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "ListOffsetsPartitionResponse",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("old_style_offsets", Array(Int64), "0"),
                    Field("timestamp", Int64, "1+", default=-1),
                    Field("offset", Int64, "1+", default=-1),
                    Field("leader_epoch", Int32, "4+", default=-1),
                ),
            ),
        ),
    ),
    api_key=2,
    versions="0-11",
    flexible="6+",
)
