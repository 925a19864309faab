"""Metadata: the brokers, the topics, and who leads their partitions."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, string, uuid


class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+"):
    topics: list[MetadataRequestTopic] | None = array(nullable="1+")
    allow_auto_topic_creation: bool = bool_("4+", default=True)
    include_cluster_authorized_operations: bool = bool_("8-10")
    include_topic_authorized_operations: bool = bool_("8+")

    class MetadataRequestTopic(Struct):
        topic_id: bytes = uuid("10+", ignorable=True)
        name: str | None = string(nullable="10+")


class MetadataResponse(Message, api_key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array()
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array()
    cluster_authorized_operations: int = int32("8-10", default=-0x80000000)
    error_code: int = int16("13+", ignorable=True)

    class MetadataResponseBroker(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)

    class MetadataResponseTopic(Struct):
        error_code: int = int16()
        name: str | None = string(nullable="12+")
        topic_id: bytes = uuid("10+", ignorable=True)
        is_internal: bool = bool_("1+", ignorable=True)
        partitions: list[MetadataResponse.MetadataResponsePartition] = array()
        topic_authorized_operations: int = int32("8+", default=-0x80000000)

    class MetadataResponsePartition(Struct):
        error_code: int = int16()
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32("7+", default=-1, ignorable=True)
        replica_nodes: list[int] = array(of=int32)
        isr_nodes: list[int] = array(of=int32)
        offline_replicas: list[int] = array("5+", of=int32, ignorable=True)
