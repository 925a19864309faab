"""EndQuorumEpoch: a KRaft leader resigns."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string, uint16, uuid


class EndQuorumEpochRequest(Message, api_key=54, versions="0-1", flexible="1+"):
    cluster_id: str | None = string(nullable="0+", default=None)
    topics: list[TopicData] = array()
    leader_endpoints: list[LeaderEndpoint] = array("1+", ignorable=True)

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[EndQuorumEpochRequest.PartitionData] = array()

    class LeaderEndpoint(Struct):
        name: str = string("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    class PartitionData(Struct):
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32()
        preferred_successors: list[int] = array("0", of=int32, ignorable=True)
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = array("1+", ignorable=True)

    class ReplicaInfo(Struct):
        candidate_id: int = int32("1+")
        candidate_directory_id: bytes = uuid("1+")


class EndQuorumEpochResponse(Message, api_key=54, versions="0-1", flexible="1+"):
    error_code: int = int16()
    topics: list[TopicData] = array()
    node_endpoints: list[NodeEndpoint] = array("1+", tag=0)

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[EndQuorumEpochResponse.PartitionData] = array()

    class NodeEndpoint(Struct):
        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()
