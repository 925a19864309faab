"""AssignReplicasToDirs: which log directory holds which replica (KIP-858)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, uuid


class AssignReplicasToDirsRequest(Message, api_key=73, versions="0", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[DirectoryData] = array()

    class DirectoryData(Struct):
        id: bytes = uuid()
        topics: list[AssignReplicasToDirsRequest.TopicData] = array()

    class TopicData(Struct):
        topic_id: bytes = uuid()
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition_index: int = int32()


class AssignReplicasToDirsResponse(Message, api_key=73, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryData] = array()

    class DirectoryData(Struct):
        id: bytes = uuid()
        topics: list[AssignReplicasToDirsResponse.TopicData] = array()

    class TopicData(Struct):
        topic_id: bytes = uuid()
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = array()

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
