"""InitializeShareGroupState: a share coordinator begins a partition's state."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[InitializeStateData] = array()

    class InitializeStateData(Struct):
        topic_id: bytes = uuid()
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition: int = int32()
        state_epoch: int = int32()
        start_offset: int = int64()


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    results: list[InitializeStateResult] = array()

    class InitializeStateResult(Struct):
        topic_id: bytes = uuid()
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = array()

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
