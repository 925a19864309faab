"""DeleteShareGroupState: a share coordinator forgets a partition's state."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string, uuid


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[DeleteStateData] = array()

    class DeleteStateData(Struct):
        topic_id: bytes = uuid()
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition: int = int32()


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible="0+"):
    results: list[DeleteStateResult] = array()

    class DeleteStateResult(Struct):
        topic_id: bytes = uuid()
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = array()

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
