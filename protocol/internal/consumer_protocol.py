"""What members of classic groups tell each other within JoinGroup and SyncGroup."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bytes_, int32, string


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(of=string)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array("1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)

    class TopicPartition(Struct):
        topic: str = string("1+")
        partitions: list[int] = array("1+", of=int32)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[TopicPartition] = array()
    user_data: bytes | None = bytes_(nullable="0+", default=None)

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(of=int32)
