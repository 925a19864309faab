"""DescribeShareGroupOffsets: the start offsets of share groups."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions="0-1", flexible="0+"):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = array()

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str = string()
        topics: (
            list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
        ) = array(nullable="0+")

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()
        partitions: list[int] = array(of=int32)


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array()

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = (
            array()
        )
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: bytes = uuid()
        partitions: list[
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
        ] = array()

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = int32()
        start_offset: int = int64()
        leader_epoch: int = int32()
        lag: int = int64("1+", default=-1, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
