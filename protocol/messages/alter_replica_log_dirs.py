"""AlterReplicaLogDirs: move replicas between a broker's log directories."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="0-2", flexible="2+"):
    dirs: list[AlterReplicaLogDir] = array()

    class AlterReplicaLogDir(Struct):
        path: str = string()
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = array()

    class AlterReplicaLogDirTopic(Struct):
        name: str = string()
        partitions: list[int] = array(of=int32)


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array()

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = string()
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = array()

    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int = int32()
        error_code: int = int16()
