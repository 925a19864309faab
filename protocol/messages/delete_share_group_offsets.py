"""DeleteShareGroupOffsets: forget the start offsets of a share group."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array()

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array()

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: bytes = uuid()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
