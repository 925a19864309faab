"""ControllerRegistration: a KRaft controller registers."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, String, Uint16, Uuid

ControllerRegistrationRequest = Message(
    "ControllerRegistrationRequest",
    Field("controller_id", Int32),
    Field("incarnation_id", Uuid),
    Field("zk_migration_ready", Bool),
    Field(
        "listeners",
        Array(
            "Listener",
            Field("name", String),
            Field("host", String),
            Field("port", Uint16),
            Field("security_protocol", Int16),
        ),
    ),
    Field(
        "features",
        Array(
            "Feature",
            Field("name", String),
            Field("min_supported_version", Int16),
            Field("max_supported_version", Int16),
        ),
    ),
    api_key=70,
    versions="0",
    flexible="0+",
)

ControllerRegistrationResponse = Message(
    "ControllerRegistrationResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    api_key=70,
    versions="0",
    flexible="0+",
)
