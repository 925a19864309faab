"""SyncGroup: the leader hands out, and members take, a group's assignment."""

from ..codec.message import Message
from ..codec.types import Array, Bytes, Field, Int16, Int32, String

SyncGroupRequest = Message(
    "SyncGroupRequest",
    Field("group_id", String),
    Field("generation_id", Int32),
    Field("member_id", String),
    Field("group_instance_id", String, "3+", nullable="3+", default=None),
    Field("protocol_type", String, "5+", nullable="5+", default=None, ignorable=True),
    Field("protocol_name", String, "5+", nullable="5+", default=None, ignorable=True),
    Field(
        "assignments",
        Array("SyncGroupRequestAssignment", Field("member_id", String), Field("assignment", Bytes)),
    ),
    api_key=14,
    versions="0-5",
    flexible="4+",
)

SyncGroupResponse = Message(
    "SyncGroupResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field("error_code", Int16),
    Field("protocol_type", String, "5+", nullable="5+", default=None, ignorable=True),
    Field("protocol_name", String, "5+", nullable="5+", default=None, ignorable=True),
    Field("assignment", Bytes),
    api_key=14,
    versions="0-5",
    flexible="4+",
)
