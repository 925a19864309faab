"""DeleteTopics: remove topics, by name or id."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Uuid

DeleteTopicsRequest = Message(
    "DeleteTopicsRequest",
    Field(
        "topics",
        Array(
            "DeleteTopicState",
            Field("name", String, "6+", nullable="6+", default=None),
            Field("topic_id", Uuid, "6+"),
        ),
        "6+",
    ),
    Field("topic_names", Array(String), "0-5", ignorable=True),
    Field("timeout_ms", Int32),
    api_key=20,
    versions="0-6",
    flexible="4+",
)

DeleteTopicsResponse = Message(
    "DeleteTopicsResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field(
        "responses",
        Array(
            "DeletableTopicResult",
            Field("name", String, nullable="6+"),
            Field("topic_id", Uuid, "6+", ignorable=True),
            Field("error_code", Int16),
            Field("error_message", String, "5+", nullable="5+", default=None, ignorable=True),
        ),
    ),
    api_key=20,
    versions="0-6",
    flexible="4+",
)
