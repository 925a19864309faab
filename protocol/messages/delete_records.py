"""DeleteRecords: move the start of partitions' logs."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String

DeleteRecordsRequest = Message(
    "DeleteRecordsRequest",
    Field(
        "topics",
        Array(
            "DeleteRecordsTopic",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "DeleteRecordsPartition",
                    Field("partition_index", Int32),
                    Field("offset", Int64),
                ),
            ),
        ),
    ),
    Field("timeout_ms", Int32),
    api_key=21,
    versions="0-2",
    flexible="2+",
)

DeleteRecordsResponse = Message(
    "DeleteRecordsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "topics",
        Array(
            "DeleteRecordsTopicResult",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "DeleteRecordsPartitionResult",
                    Field("partition_index", Int32),
                    Field("low_watermark", Int64),
                    Field("error_code", Int16),
                ),
            ),
        ),
    ),
    api_key=21,
    versions="0-2",
    flexible="2+",
)
