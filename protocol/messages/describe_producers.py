"""DescribeProducers: the producers active in partitions."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible="0+"):
    topics: list[TopicRequest] = array()

    class TopicRequest(Struct):
        name: str = string()
        partition_indexes: list[int] = array(of=int32)


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array()

    class TopicResponse(Struct):
        name: str = string()
        partitions: list[DescribeProducersResponse.PartitionResponse] = array()

    class PartitionResponse(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        active_producers: list[DescribeProducersResponse.ProducerState] = array()

    class ProducerState(Struct):
        producer_id: int = int64()
        producer_epoch: int = int32()
        last_sequence: int = int32(default=-1)
        last_timestamp: int = int64(default=-1)
        coordinator_epoch: int = int32()
        current_txn_start_offset: int = int64(default=-1)
