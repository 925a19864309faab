"""ReadShareGroupState: a partition's state from the share coordinator."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int8, int16, int32, int64, string, uuid


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[ReadStateData] = array()

    class ReadStateData(Struct):
        topic_id: bytes = uuid()
        partitions: list[ReadShareGroupStateRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition: int = int32()
        leader_epoch: int = int32()


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    results: list[ReadStateResult] = array()

    class ReadStateResult(Struct):
        topic_id: bytes = uuid()
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = array()

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        state_epoch: int = int32()
        start_offset: int = int64()
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = array()

    class StateBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()
