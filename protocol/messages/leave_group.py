"""LeaveGroup: members leave a classic group."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String

LeaveGroupRequest = Message(
    "LeaveGroupRequest",
    Field("group_id", String),
    Field("member_id", String, "0-2"),
    Field(
        "members",
        Array(
            "MemberIdentity",
            Field("member_id", String, "3+"),
            Field("group_instance_id", String, "3+", nullable="3+", default=None),
            Field("reason", String, "5+", nullable="5+", default=None, ignorable=True),
        ),
        "3+",
    ),
    api_key=13,
    versions="0-5",
    flexible="4+",
)

LeaveGroupResponse = Message(
    "LeaveGroupResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field("error_code", Int16),
    Field(
        "members",
        Array(
            "MemberResponse",
            Field("member_id", String, "3+"),
            Field("group_instance_id", String, "3+", nullable="3+"),
            Field("error_code", Int16, "3+"),
        ),
        "3+",
    ),
    api_key=13,
    versions="0-5",
    flexible="4+",
)
