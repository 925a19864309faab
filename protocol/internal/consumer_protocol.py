"""What members of classic groups tell each other within JoinGroup and SyncGroup."""

from ..codec.message import Message
from ..codec.types import Array, Bytes, Field, Int32, String

ConsumerProtocolSubscription = Message(
    "ConsumerProtocolSubscription",
    Field("topics", Array(String)),
    Field("user_data", Bytes, nullable="0+", default=None),
    Field(
        "owned_partitions",
        Array(
            "TopicPartition", Field("topic", String, "1+"), Field("partitions", Array(Int32), "1+")
        ),
        "1+",
        ignorable=True,
    ),
    Field("generation_id", Int32, "2+", default=-1, ignorable=True),
    Field("rack_id", String, "3+", nullable="3+", default=None, ignorable=True),
    versions="0-3",
)

ConsumerProtocolAssignment = Message(
    "ConsumerProtocolAssignment",
    Field(
        "assigned_partitions",
        Array("TopicPartition", Field("topic", String), Field("partitions", Array(Int32))),
    ),
    Field("user_data", Bytes, nullable="0+", default=None),
    versions="0-3",
)
