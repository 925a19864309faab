"""DeleteShareGroupOffsets: forget the start offsets of a share group."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Uuid

DeleteShareGroupOffsetsRequest = Message(
    "DeleteShareGroupOffsetsRequest",
    Field("group_id", String),
    Field("topics", Array("DeleteShareGroupOffsetsRequestTopic", Field("topic_name", String))),
    api_key=92,
    versions="0",
    flexible="0+",
)

DeleteShareGroupOffsetsResponse = Message(
    "DeleteShareGroupOffsetsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "responses",
        Array(
            "DeleteShareGroupOffsetsResponseTopic",
            Field("topic_name", String),
            Field("topic_id", Uuid),
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
        ),
    ),
    api_key=92,
    versions="0",
    flexible="0+",
)
