"""DescribeQuorum: the state of a KRaft quorum."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible="0+"):
    topics: list[TopicData] = array()

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[DescribeQuorumRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition_index: int = int32()


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible="0+"):
    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    topics: list[TopicData] = array()
    nodes: list[Node] = array("2+")

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[DescribeQuorumResponse.PartitionData] = array()

    class Node(Struct):
        node_id: int = int32("2+")
        listeners: list[DescribeQuorumResponse.Listener] = array("2+")

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string("2+", nullable="2+", default=None, ignorable=True)
        leader_id: int = int32()
        leader_epoch: int = int32()
        high_watermark: int = int64()
        current_voters: list[DescribeQuorumResponse.ReplicaState] = array()
        observers: list[DescribeQuorumResponse.ReplicaState] = array()

    class Listener(Struct):
        name: str = string("2+")
        host: str = string("2+")
        port: int = uint16("2+")

    class ReplicaState(Struct):
        replica_id: int = int32()
        replica_directory_id: bytes = uuid("2+")
        log_end_offset: int = int64()
        last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
        last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)
