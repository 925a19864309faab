"""What `__consumer_offsets` keeps of classic groups."""

from ..codec.message import Message
from ..codec.types import Array, Bytes, Field, Int32, Int64, String

GroupMetadataKey = Message("GroupMetadataKey", Field("group", String), versions="0")

GroupMetadataValue = Message(
    "GroupMetadataValue",
    Field("protocol_type", String),
    Field("generation", Int32),
    Field("protocol", String, nullable="0+"),
    Field("leader", String, nullable="0+"),
    Field("current_state_timestamp", Int64, "2+", default=-1, ignorable=True),
    Field(
        "members",
        Array(
            "MemberMetadata",
            Field("member_id", String),
            Field("group_instance_id", String, "3+", nullable="3+", default=None, ignorable=True),
            Field("client_id", String),
            Field("client_host", String),
            Field("rebalance_timeout", Int32, "1+", default=-1, ignorable=True),
            Field("session_timeout", Int32),
            Field("subscription", Bytes),
            Field("assignment", Bytes),
        ),
    ),
    versions="0-4",
    flexible="4+",
)
