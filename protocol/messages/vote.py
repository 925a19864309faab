"""Vote: a KRaft candidate asks for votes."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, int64, string, uint16, uuid


class VoteRequest(Message, api_key=52, versions="0-2", flexible="0+"):
    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[TopicData] = array()

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[VoteRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition_index: int = int32()
        replica_epoch: int = int32()
        replica_id: int = int32()
        replica_directory_id: bytes = uuid("1+", ignorable=True)
        voter_directory_id: bytes = uuid("1+", ignorable=True)
        last_offset_epoch: int = int32()
        last_offset: int = int64()
        pre_vote: bool = bool_("2+")


class VoteResponse(Message, api_key=52, versions="0-2", flexible="0+"):
    error_code: int = int16()
    topics: list[TopicData] = array()
    node_endpoints: list[NodeEndpoint] = array("1+", tag=0)

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[VoteResponse.PartitionData] = array()

    class NodeEndpoint(Struct):
        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()
        vote_granted: bool = bool_()
