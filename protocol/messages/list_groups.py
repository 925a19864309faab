"""ListGroups: the groups that a broker coordinates."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String

ListGroupsRequest = Message(
    "ListGroupsRequest",
    Field("states_filter", Array(String), "4+"),
    Field("types_filter", Array(String), "5+"),
    api_key=16,
    versions="0-5",
    flexible="3+",
)

ListGroupsResponse = Message(
    "ListGroupsResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field("error_code", Int16),
    Field(
        "groups",
        Array(
            "ListedGroup",
            Field("group_id", String),
            Field("protocol_type", String),
            Field("group_state", String, "4+", ignorable=True),
            Field("group_type", String, "5+", ignorable=True),
        ),
    ),
    api_key=16,
    versions="0-5",
    flexible="3+",
)
