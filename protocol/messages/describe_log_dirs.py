"""DescribeLogDirs: log directories and what is in them."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String

DescribeLogDirsRequest = Message(
    "DescribeLogDirsRequest",
    Field(
        "topics",
        Array("DescribableLogDirTopic", Field("topic", String), Field("partitions", Array(Int32))),
        nullable="0+",
    ),
    api_key=35,
    versions="0-5",
    flexible="2+",
)

DescribeLogDirsResponse = Message(
    "DescribeLogDirsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16, "3+", ignorable=True),
    Field(
        "results",
        Array(
            "DescribeLogDirsResult",
            Field("error_code", Int16),
            Field("log_dir", String),
            Field(
                "topics",
                Array(
                    "DescribeLogDirsTopic",
                    Field("name", String),
                    Field(
                        "partitions",
                        Array(
                            "DescribeLogDirsPartition",
                            Field("partition_index", Int32),
                            Field("partition_size", Int64),
                            Field("offset_lag", Int64),
                            Field("is_future_key", Bool),
                        ),
                    ),
                ),
            ),
            Field("total_bytes", Int64, "4+", default=-1, ignorable=True),
            Field("usable_bytes", Int64, "4+", default=-1, ignorable=True),
            Field("is_cordoned", Bool, "5+", ignorable=True),
        ),
    ),
    api_key=35,
    versions="0-5",
    flexible="2+",
)
