"""DescribeAcls: the access rules that match a filter."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, String

DescribeAclsRequest = Message(
    "DescribeAclsRequest",
    Field("resource_type_filter", Int8),
    Field("resource_name_filter", String, nullable="0+"),
    Field("pattern_type_filter", Int8, "1+", default=3),
    Field("principal_filter", String, nullable="0+"),
    Field("host_filter", String, nullable="0+"),
    Field("operation", Int8),
    Field("permission_type", Int8),
    api_key=29,
    versions="0-3",
    flexible="2+",
)

DescribeAclsResponse = Message(
    "DescribeAclsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "resources",
        Array(
            "DescribeAclsResource",
            Field("resource_type", Int8),
            Field("resource_name", String),
            Field("pattern_type", Int8, "1+", default=3),
            Field(
                "acls",
                Array(
                    "AclDescription",
                    Field("principal", String),
                    Field("host", String),
                    Field("operation", Int8),
                    Field("permission_type", Int8),
                ),
            ),
        ),
    ),
    api_key=29,
    versions="0-3",
    flexible="2+",
)
