"""ReadShareGroupStateSummary: a partition's state without its batches."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string, uuid


class ReadShareGroupStateSummaryRequest(Message, api_key=87, versions="0-1", flexible="0+"):
    group_id: str = string()
    topics: list[ReadStateSummaryData] = array()

    class ReadStateSummaryData(Struct):
        topic_id: bytes = uuid()
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition: int = int32()
        leader_epoch: int = int32()


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions="0-1", flexible="0+"):
    results: list[ReadStateSummaryResult] = array()

    class ReadStateSummaryResult(Struct):
        topic_id: bytes = uuid()
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = array()

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
