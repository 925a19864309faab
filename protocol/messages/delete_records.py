"""DeleteRecords: move the start of partitions' logs."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+"):
    topics: list[DeleteRecordsTopic] = array()
    timeout_ms: int = int32()

    class DeleteRecordsTopic(Struct):
        name: str = string()
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = array()

    class DeleteRecordsPartition(Struct):
        partition_index: int = int32()
        offset: int = int64()


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array()

    class DeleteRecordsTopicResult(Struct):
        name: str = string()
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = array()

    class DeleteRecordsPartitionResult(Struct):
        partition_index: int = int32()
        low_watermark: int = int64()
        error_code: int = int16()
