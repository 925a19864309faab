"""DescribeTopicPartitions: topics' partitions, page by page (KIP-966)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, string, struct, uuid


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible="0+"):
    topics: list[TopicRequest] = array()
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = struct(nullable="0+", default=None)

    class TopicRequest(Struct):
        name: str = string()

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible="0+"):
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array()
    next_cursor: Cursor | None = struct(nullable="0+", default=None)

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int = int16()
        name: str | None = string(nullable="0+")
        topic_id: bytes = uuid(ignorable=True)
        is_internal: bool = bool_(ignorable=True)
        partitions: list[
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
        ] = array()
        topic_authorized_operations: int = int32(default=-0x80000000)

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()

    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int = int16()
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32(default=-1, ignorable=True)
        replica_nodes: list[int] = array(of=int32)
        isr_nodes: list[int] = array(of=int32)
        eligible_leader_replicas: list[int] | None = array(of=int32, nullable="0+", default=None)
        last_known_elr: list[int] | None = array(of=int32, nullable="0+", default=None)
        offline_replicas: list[int] = array(of=int32, ignorable=True)
