"""LeaderAndIsr: the controller tells a broker what it leads and follows (until Kafka 3.9)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, int64, string, uuid


class LeaderAndIsrRequest(Message, api_key=4, versions="0-7", flexible="4+"):
    controller_id: int = int32()
    is_kraft_controller: bool = bool_("7+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)
    type: int = int8("5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array("0-1")
    topic_states: list[LeaderAndIsrTopicState] = array("2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array()

    class LeaderAndIsrPartitionState(Struct):
        topic_name: str = string("0-1", ignorable=True)
        partition_index: int = int32()
        controller_epoch: int = int32()
        leader: int = int32()
        leader_epoch: int = int32()
        isr: list[int] = array(of=int32)
        partition_epoch: int = int32()
        replicas: list[int] = array(of=int32)
        adding_replicas: list[int] = array("3+", of=int32, ignorable=True)
        removing_replicas: list[int] = array("3+", of=int32, ignorable=True)
        is_new: bool = bool_("1+", ignorable=True)
        leader_recovery_state: int = int8("6+")

    class LeaderAndIsrTopicState(Struct):
        topic_name: str = string("2+")
        topic_id: bytes = uuid("5+", ignorable=True)
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = array("2+")

    class LeaderAndIsrLiveLeader(Struct):
        broker_id: int = int32()
        host_name: str = string()
        port: int = int32()


class LeaderAndIsrResponse(Message, api_key=4, versions="0-7", flexible="4+"):
    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array("0-4")
    topics: list[LeaderAndIsrTopicError] = array("5+")

    class LeaderAndIsrPartitionError(Struct):
        topic_name: str = string("0-4", ignorable=True)
        partition_index: int = int32()
        error_code: int = int16()

    class LeaderAndIsrTopicError(Struct):
        topic_id: bytes = uuid("5+")
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = array("5+")
