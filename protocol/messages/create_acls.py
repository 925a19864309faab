"""CreateAcls: add access rules."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, String

CreateAclsRequest = Message(
    "CreateAclsRequest",
    Field(
        "creations",
        Array(
            "AclCreation",
            Field("resource_type", Int8),
            Field("resource_name", String),
            Field("resource_pattern_type", Int8, "1+", default=3),
            Field("principal", String),
            Field("host", String),
            Field("operation", Int8),
            Field("permission_type", Int8),
        ),
    ),
    api_key=30,
    versions="0-3",
    flexible="2+",
)

CreateAclsResponse = Message(
    "CreateAclsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "results",
        Array(
            "AclCreationResult",
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
        ),
    ),
    api_key=30,
    versions="0-3",
    flexible="2+",
)
