"""AlterPartition: a leader asks the controller for another ISR."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int8, int16, int32, int64, string, uuid


class AlterPartitionRequest(Message, api_key=56, versions="0-3", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array()

    class TopicData(Struct):
        topic_name: str = string("0-1", ignorable=True)
        topic_id: bytes = uuid("2+", ignorable=True)
        partitions: list[AlterPartitionRequest.PartitionData] = array()

    class PartitionData(Struct):
        partition_index: int = int32()
        leader_epoch: int = int32()
        new_isr: list[int] = array("0-2", of=int32)
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = array("3+")
        leader_recovery_state: int = int8("1+")
        partition_epoch: int = int32()

    class BrokerState(Struct):
        broker_id: int = int32("3+")
        broker_epoch: int = int64("3+", default=-1)


class AlterPartitionResponse(Message, api_key=56, versions="0-3", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicData] = array()

    class TopicData(Struct):
        topic_name: str = string("0-1", ignorable=True)
        topic_id: bytes = uuid("2+", ignorable=True)
        partitions: list[AlterPartitionResponse.PartitionData] = array()

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()
        isr: list[int] = array(of=int32)
        leader_recovery_state: int = int8("1+", ignorable=True)
        partition_epoch: int = int32()
