"""UpdateMetadata: the controller tells a broker about the cluster (until Kafka 3.9)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, int64, string, uuid


class UpdateMetadataRequest(Message, api_key=6, versions="0-8", flexible="6+"):
    controller_id: int = int32()
    is_kraft_controller: bool = bool_("8+")
    type: int = int8("8+", tag=0)
    controller_epoch: int = int32()
    broker_epoch: int = int64("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array("0-4")
    topic_states: list[UpdateMetadataTopicState] = array("5+")
    live_brokers: list[UpdateMetadataBroker] = array()

    class UpdateMetadataPartitionState(Struct):
        topic_name: str = string("0-4", ignorable=True)
        partition_index: int = int32()
        controller_epoch: int = int32()
        leader: int = int32()
        leader_epoch: int = int32()
        isr: list[int] = array(of=int32)
        zk_version: int = int32()
        replicas: list[int] = array(of=int32)
        offline_replicas: list[int] = array("4+", of=int32, ignorable=True)

    class UpdateMetadataTopicState(Struct):
        topic_name: str = string("5+")
        topic_id: bytes = uuid("7+", ignorable=True)
        partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = array("5+")

    class UpdateMetadataBroker(Struct):
        id: int = int32()
        v0_host: str = string("0", ignorable=True)
        v0_port: int = int32("0", ignorable=True)
        endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint] = array("1+", ignorable=True)
        rack: str | None = string("2+", nullable="0+", ignorable=True)

    class UpdateMetadataEndpoint(Struct):
        port: int = int32("1+")
        host: str = string("1+")
        listener: str = string("3+", ignorable=True)
        security_protocol: int = int16("1+")


class UpdateMetadataResponse(Message, api_key=6, versions="0-8", flexible="6+"):
    error_code: int = int16()
