"""Heartbeat: a member of a classic group is alive."""

from ..codec.message import Message
from ..codec.types import Field, Int16, Int32, String

HeartbeatRequest = Message(
    "HeartbeatRequest",
    Field("group_id", String),
    Field("generation_id", Int32),
    Field("member_id", String),
    Field("group_instance_id", String, "3+", nullable="3+", default=None),
    api_key=12,
    versions="0-4",
    flexible="4+",
)

HeartbeatResponse = Message(
    "HeartbeatResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field("error_code", Int16),
    api_key=12,
    versions="0-4",
    flexible="4+",
)
