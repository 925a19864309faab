"""StreamsGroupHeartbeat: membership in a streams group (KIP-1071)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, int64, string, struct, uint16


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions="0", flexible="0+"):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = struct(nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = array(nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(nullable="0+", default=None)
    process_id: str | None = string(nullable="0+", default=None)
    user_endpoint: Endpoint | None = struct(nullable="0+", default=None)
    client_tags: list[KeyValue] | None = array(nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = array(nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = array(nullable="0+", default=None)
    shutdown_application: bool = bool_()

    class Topology(Struct):
        epoch: int = int32()
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = array()

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(of=int32)

    class Endpoint(Struct):
        host: str = string()
        port: int = uint16()

    class KeyValue(Struct):
        key: str = string()
        value: str = string()

    class TaskOffset(Struct):
        subtopology_id: str = string()
        partition: int = int32()
        offset: int = int64()

    class Subtopology(Struct):
        subtopology_id: str = string()
        source_topics: list[str] = array(of=string)
        source_topic_regex: list[str] = array(of=string)
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = array()
        repartition_sink_topics: list[str] = array(of=string)
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = array()
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = array()

    class TopicInfo(Struct):
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = array()

    class CopartitionGroup(Struct):
        source_topics: list[int] = array(of=int16)
        source_topic_regex: list[int] = array(of=int16)
        repartition_source_topics: list[int] = array(of=int16)


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array(nullable="0+")
    active_tasks: list[TaskIds] | None = array(nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(nullable="0+", default=None)
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        nullable="0+", default=None
    )

    class Status(Struct):
        status_code: int = int8()
        status_detail: str = string()

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(of=int32)

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = struct()
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = array()
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = array()

    class Endpoint(Struct):
        host: str = string()
        port: int = uint16()

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(of=int32)
