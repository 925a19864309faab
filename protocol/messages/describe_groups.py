"""DescribeGroups: state and members of classic groups."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Bytes, Field, Int16, Int32, String

DescribeGroupsRequest = Message(
    "DescribeGroupsRequest",
    Field("groups", Array(String)),
    Field("include_authorized_operations", Bool, "3+"),
    api_key=15,
    versions="0-6",
    flexible="5+",
)

DescribeGroupsResponse = Message(
    "DescribeGroupsResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field(
        "groups",
        Array(
            "DescribedGroup",
            Field("error_code", Int16),
            Field("error_message", String, "6+", nullable="6+", default=None),
            Field("group_id", String),
            Field("group_state", String),
            Field("protocol_type", String),
            Field("protocol_data", String),
            Field(
                "members",
                Array(
                    "DescribedGroupMember",
                    Field("member_id", String),
                    Field(
                        "group_instance_id",
                        String,
                        "4+",
                        nullable="4+",
                        default=None,
                        ignorable=True,
                    ),
                    Field("client_id", String),
                    Field("client_host", String),
                    Field("member_metadata", Bytes),
                    Field("member_assignment", Bytes),
                ),
            ),
            Field("authorized_operations", Int32, "3+", default=-0x80000000),
        ),
    ),
    api_key=15,
    versions="0-6",
    flexible="5+",
)
