"""IncrementalAlterConfigs: set, delete, append or subtract single settings."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, String

IncrementalAlterConfigsRequest = Message(
    "IncrementalAlterConfigsRequest",
    Field(
        "resources",
        Array(
            "AlterConfigsResource",
            Field("resource_type", Int8),
            Field("resource_name", String),
            Field(
                "configs",
                Array(
                    "AlterableConfig",
                    Field("name", String),
                    Field("config_operation", Int8),
                    Field("value", String, nullable="0+"),
                ),
            ),
        ),
    ),
    Field("validate_only", Bool),
    api_key=44,
    versions="0-1",
    flexible="1+",
)

IncrementalAlterConfigsResponse = Message(
    "IncrementalAlterConfigsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "responses",
        Array(
            "AlterConfigsResourceResponse",
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
            Field("resource_type", Int8),
            Field("resource_name", String),
        ),
    ),
    api_key=44,
    versions="0-1",
    flexible="1+",
)
