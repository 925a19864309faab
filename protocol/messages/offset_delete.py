"""OffsetDelete: forget a group's offsets."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string


class OffsetDeleteRequest(Message, api_key=47, versions="0"):
    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array()

    class OffsetDeleteRequestTopic(Struct):
        name: str = string()
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = array()

    class OffsetDeleteRequestPartition(Struct):
        partition_index: int = int32()


class OffsetDeleteResponse(Message, api_key=47, versions="0"):
    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array()

    class OffsetDeleteResponseTopic(Struct):
        name: str = string()
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = array()

    class OffsetDeleteResponsePartition(Struct):
        partition_index: int = int32()
        error_code: int = int16()
