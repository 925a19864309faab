"""WriteShareGroupState: a partition's state to the share coordinator."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int8, int16, int32, int64, string, uuid


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", flexible="0+"):
    group_id: str = string()
    topics: list[WriteStateData] = array()

    class WriteStateData(Struct):
        topic_id: bytes = uuid()
        partitions: list[WriteShareGroupStateRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition: int = int32()
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = array()

    class StateBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible="0+"):
    results: list[WriteStateResult] = array()

    class WriteStateResult(Struct):
        topic_id: bytes = uuid()
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = array()

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
