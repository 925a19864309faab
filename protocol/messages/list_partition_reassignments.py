"""ListPartitionReassignments: the moves of replicas under way."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String

ListPartitionReassignmentsRequest = Message(
    "ListPartitionReassignmentsRequest",
    Field("timeout_ms", Int32, default=60000),
    Field(
        "topics",
        Array(
            "ListPartitionReassignmentsTopics",
            Field("name", String),
            Field("partition_indexes", Array(Int32)),
        ),
        nullable="0+",
        default=None,
    ),
    api_key=46,
    versions="0",
    flexible="0+",
)

ListPartitionReassignmentsResponse = Message(
    "ListPartitionReassignmentsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "topics",
        Array(
            "OngoingTopicReassignment",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "OngoingPartitionReassignment",
                    Field("partition_index", Int32),
                    Field("replicas", Array(Int32)),
                    Field("adding_replicas", Array(Int32)),
                    Field("removing_replicas", Array(Int32)),
                ),
            ),
        ),
    ),
    api_key=46,
    versions="0",
    flexible="0+",
)
