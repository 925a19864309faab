"""DeleteAcls: remove the access rules that match filters."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, String

DeleteAclsRequest = Message(
    "DeleteAclsRequest",
    Field(
        "filters",
        Array(
            "DeleteAclsFilter",
            Field("resource_type_filter", Int8),
            Field("resource_name_filter", String, nullable="0+"),
            Field("pattern_type_filter", Int8, "1+", default=3),
            Field("principal_filter", String, nullable="0+"),
            Field("host_filter", String, nullable="0+"),
            Field("operation", Int8),
            Field("permission_type", Int8),
        ),
    ),
    api_key=31,
    versions="0-3",
    flexible="2+",
)

DeleteAclsResponse = Message(
    "DeleteAclsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "filter_results",
        Array(
            "DeleteAclsFilterResult",
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
            Field(
                "matching_acls",
                Array(
                    "DeleteAclsMatchingAcl",
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                    Field("resource_type", Int8),
                    Field("resource_name", String),
                    Field("pattern_type", Int8, "1+", default=3),
                    Field("principal", String),
                    Field("host", String),
                    Field("operation", Int8),
                    Field("permission_type", Int8),
                ),
            ),
        ),
    ),
    api_key=31,
    versions="0-3",
    flexible="2+",
)
