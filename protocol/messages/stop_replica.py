"""StopReplica: the controller tells a broker to give up replicas (until Kafka 3.9)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, int64, string


class StopReplicaRequest(Message, api_key=5, versions="0-4", flexible="2+"):
    controller_id: int = int32()
    is_kraft_controller: bool = bool_("4+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("1+", default=-1, ignorable=True)
    delete_partitions: bool = bool_("0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array("0")
    topics: list[StopReplicaTopicV1] = array("1-2")
    topic_states: list[StopReplicaTopicState] = array("3+")

    class StopReplicaPartitionV0(Struct):
        topic_name: str = string("0")
        partition_index: int = int32("0")

    class StopReplicaTopicV1(Struct):
        name: str = string("1-2")
        partition_indexes: list[int] = array("1-2", of=int32)

    class StopReplicaTopicState(Struct):
        topic_name: str = string("3+")
        partition_states: list[StopReplicaRequest.StopReplicaPartitionState] = array("3+")

    class StopReplicaPartitionState(Struct):
        partition_index: int = int32("3+")
        leader_epoch: int = int32("3+", default=-1)
        delete_partition: bool = bool_("3+")


class StopReplicaResponse(Message, api_key=5, versions="0-4", flexible="2+"):
    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array()

    class StopReplicaPartitionError(Struct):
        topic_name: str = string()
        partition_index: int = int32()
        error_code: int = int16()
