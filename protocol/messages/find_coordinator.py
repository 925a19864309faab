"""FindCoordinator: the broker that coordinates a group, a transaction or a share."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, String

FindCoordinatorRequest = Message(
    "FindCoordinatorRequest",
    Field("key", String, "0-3"),
    Field("key_type", Int8, "1+"),
    Field("coordinator_keys", Array(String), "4+"),
    api_key=10,
    versions="0-6",
    flexible="3+",
)

FindCoordinatorResponse = Message(
    "FindCoordinatorResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field("error_code", Int16, "0-3"),
    Field("error_message", String, "1-3", nullable="1-3", default=None, ignorable=True),
    Field("node_id", Int32, "0-3"),
    Field("host", String, "0-3"),
    Field("port", Int32, "0-3"),
    Field(
        "coordinators",
        Array(
            "Coordinator",
            Field("key", String, "4+"),
            Field("node_id", Int32, "4+"),
            Field("host", String, "4+"),
            Field("port", Int32, "4+"),
            Field("error_code", Int16, "4+"),
            Field("error_message", String, "4+", nullable="4+", default=None, ignorable=True),
        ),
        "4+",
    ),
    api_key=10,
    versions="0-6",
    flexible="3+",
)
