"""ListConfigResources: the resources that have settings of their own."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, String

ListConfigResourcesRequest = Message(
    "ListConfigResourcesRequest",
    Field("resource_types", Array(Int8), "1+"),
    api_key=74,
    versions="0-1",
    flexible="0+",
)

ListConfigResourcesResponse = Message(
    "ListConfigResourcesResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field(
        "config_resources",
        Array(
            "ConfigResource",
            Field("resource_name", String),
            Field("resource_type", Int8, "1+", default=16, ignorable=True),
        ),
    ),
    api_key=74,
    versions="0-1",
    flexible="0+",
)
