"""ShareGroupHeartbeat: membership in a share group (KIP-932)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Struct, Uuid

ShareGroupHeartbeatRequest = Message(
    "ShareGroupHeartbeatRequest",
    Field("group_id", String),
    Field("member_id", String),
    Field("member_epoch", Int32),
    Field("rack_id", String, nullable="0+", default=None),
    Field("subscribed_topic_names", Array(String), nullable="0+", default=None),
    api_key=76,
    versions="1",
    flexible="0+",
)

ShareGroupHeartbeatResponse = Message(
    "ShareGroupHeartbeatResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field("member_id", String, nullable="0+", default=None),
    Field("member_epoch", Int32),
    Field("heartbeat_interval_ms", Int32),
    Field(
        "assignment",
        Struct(
            "Assignment",
            Field(
                "topic_partitions",
                Array(
                    "TopicPartitions", Field("topic_id", Uuid), Field("partitions", Array(Int32))
                ),
            ),
        ),
        nullable="0+",
        default=None,
    ),
    api_key=76,
    versions="1",
    flexible="0+",
)
