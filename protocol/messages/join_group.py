"""JoinGroup: become or stay a member of a classic group."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Bytes, Field, Int16, Int32, String

JoinGroupRequest = Message(
    "JoinGroupRequest",
    Field("group_id", String),
    Field("session_timeout_ms", Int32),
    Field("rebalance_timeout_ms", Int32, "1+", default=-1, ignorable=True),
    Field("member_id", String),
    Field("group_instance_id", String, "5+", nullable="5+", default=None),
    Field("protocol_type", String),
    Field(
        "protocols",
        Array("JoinGroupRequestProtocol", Field("name", String), Field("metadata", Bytes)),
    ),
    Field("reason", String, "8+", nullable="8+", default=None, ignorable=True),
    api_key=11,
    versions="0-9",
    flexible="6+",
)

JoinGroupResponse = Message(
    "JoinGroupResponse",
    Field("throttle_time_ms", Int32, "2+", ignorable=True),
    Field("error_code", Int16),
    Field("generation_id", Int32, default=-1),
    Field("protocol_type", String, "7+", nullable="7+", default=None, ignorable=True),
    Field("protocol_name", String, nullable="7+"),
    Field("leader", String),
    Field("skip_assignment", Bool, "9+"),
    Field("member_id", String),
    Field(
        "members",
        Array(
            "JoinGroupResponseMember",
            Field("member_id", String),
            Field("group_instance_id", String, "5+", nullable="5+", default=None, ignorable=True),
            Field("metadata", Bytes),
        ),
    ),
    api_key=11,
    versions="0-9",
    flexible="6+",
)
