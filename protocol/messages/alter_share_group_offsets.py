"""AlterShareGroupOffsets: set the start offsets of a share group."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array()

    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = (
            array()
        )

    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: int = int32()
        start_offset: int = int64()


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array()

    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: bytes = uuid()
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = (
            array()
        )

    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
