"""AlterPartitionReassignments: start or cancel moves of replicas."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, String

AlterPartitionReassignmentsRequest = Message(
    "AlterPartitionReassignmentsRequest",
    Field("timeout_ms", Int32, default=60000),
    Field("allow_replication_factor_change", Bool, "1+", default=True),
    Field(
        "topics",
        Array(
            "ReassignableTopic",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "ReassignablePartition",
                    Field("partition_index", Int32),
                    Field("replicas", Array(Int32), nullable="0+", default=None),
                ),
            ),
        ),
    ),
    api_key=45,
    versions="0-1",
    flexible="0+",
)

AlterPartitionReassignmentsResponse = Message(
    "AlterPartitionReassignmentsResponse",
    Field("throttle_time_ms", Int32),
    Field("allow_replication_factor_change", Bool, "1+", default=True, ignorable=True),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "responses",
        Array(
            "ReassignableTopicResponse",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "ReassignablePartitionResponse",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                ),
            ),
        ),
    ),
    api_key=45,
    versions="0-1",
    flexible="0+",
)
