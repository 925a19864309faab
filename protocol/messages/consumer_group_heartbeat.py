"""ConsumerGroupHeartbeat: membership in a group of the consumer protocol (KIP-848)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Struct, Uuid

TOPIC_PARTITIONS = Struct(
    "TopicPartitions", Field("topic_id", Uuid), Field("partitions", Array(Int32))
)

ConsumerGroupHeartbeatRequest = Message(
    "ConsumerGroupHeartbeatRequest",
    Field("group_id", String),
    Field("member_id", String),
    Field("member_epoch", Int32),
    Field("instance_id", String, nullable="0+", default=None),
    Field("rack_id", String, nullable="0+", default=None),
    Field("rebalance_timeout_ms", Int32, default=-1),
    Field("subscribed_topic_names", Array(String), nullable="0+", default=None),
    Field("subscribed_topic_regex", String, "1+", nullable="1+", default=None),
    Field("server_assignor", String, nullable="0+", default=None),
    Field(
        "topic_partitions",
        Array("TopicPartitions", Field("topic_id", Uuid), Field("partitions", Array(Int32))),
        nullable="0+",
        default=None,
    ),
    api_key=68,
    versions="0-1",
    flexible="0+",
)

ConsumerGroupHeartbeatResponse = Message(
    "ConsumerGroupHeartbeatResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field("member_id", String, nullable="0+", default=None),
    Field("member_epoch", Int32),
    Field("heartbeat_interval_ms", Int32),
    Field(
        "assignment",
        Struct("Assignment", Field("topic_partitions", Array(TOPIC_PARTITIONS))),
        nullable="0+",
        default=None,
    ),
    api_key=68,
    versions="0-1",
    flexible="0+",
)
